import type { Json } from '#formats/answer.ts'
import { readToolInput } from '#formats/json-values.ts'
import type { ContentPart, DocumentPart, Part, Source, TurnMessage } from '#formats/turn.ts'
import { parseExact } from '#platform/exact-json.ts'

export type WrittenMessage = { role: TurnMessage['role']; content: Json[] }

/**
 * A conversation as blocks. Consecutive messages of one role become one, with the tool results first: the format
 * wants every result right after its call.
 */
export function writeMessages(messages: readonly TurnMessage[]): WrittenMessage[] {
  const written: WrittenMessage[] = []
  for (const { role, parts } of messages) {
    const content = parts.flatMap(writePart)
    const last = written.at(-1)
    if (last?.role === role) for (const block of content) last.content.push(block)
    else if (content.length > 0) written.push({ role, content })
  }
  return written.map(({ role, content }) => ({ role, content: resultsFirst(content) }))
}

const isResult = ({ type }: Json) => type === 'tool_result'

const resultsFirst = (content: Json[]): Json[] =>
  content.some(isResult)
    ? [...content.filter(isResult), ...content.filter((block) => !isResult(block))]
    : content

function writePart(part: Part): Json[] {
  switch (part.type) {
    case 'tool_call': {
      const input = toInput(part.arguments)
      return [{ type: 'tool_use', id: toId(part.id), name: part.name, input }]
    }
    case 'tool_result':
      return [writeToolResult(part)]
    case 'reasoning':
      return writeReasoning(part)
    case 'refusal':
      return writeText(part.text)
    case 'foreign':
      return []
    case 'text':
    case 'image':
    case 'document':
      return writeContent(part)
  }
}

function writeContent(part: ContentPart): Json[] {
  if (part.type === 'text') return writeText(part.text)
  if (part.type === 'image') return [{ type: 'image', source: writeSource(part.source) }]
  const { source, title } = part
  return [{ type: 'document', source: writeDocument(source), ...(title !== null && { title }) }]
}

/** Empty text blocks are refused. */
const writeText = (text: string): Json[] => (text === '' ? [] : [{ type: 'text', text }])

function writeToolResult(part: Extract<Part, { type: 'tool_result' }>): Json {
  const content = part.parts.flatMap(writeContent)
  return {
    type: 'tool_result',
    tool_use_id: toId(part.callId),
    ...(content.length > 0 && { content }),
    ...(part.isError && { is_error: true }),
  }
}

/** An upstream accepts reasoning only with its own signature or as redacted data. */
function writeReasoning({ text, opaque }: Extract<Part, { type: 'reasoning' }>): Json[] {
  if (opaque?.origin !== 'messages') return []
  const { kind, data } = opaque
  if (kind === 'redacted') return [{ type: 'redacted_thinking', data }]
  return kind === 'signature' ? [{ type: 'thinking', thinking: text, signature: data }] : []
}

function writeSource(source: Source): Json {
  if (source.type === 'base64') {
    return { type: 'base64', media_type: source.mediaType, data: source.data }
  }
  if (source.type === 'url') return { type: 'url', url: source.url }
  return { type: 'file', file_id: source.id }
}

/** Encoded documents must be PDF in this format; text is sent as text. */
function writeDocument(source: DocumentPart['source']): Json {
  if (source.type === 'text') return plainText(source.text)
  const isText = source.type === 'base64' && source.mediaType.startsWith('text/')
  return isText ? plainText(Buffer.from(source.data, 'base64').toString()) : writeSource(source)
}

const plainText = (data: string): Json => ({ type: 'text', media_type: 'text/plain', data })

/** Ids may only have letters, digits, `_` and `-`; others are changed in the same way in call and result. */
const toId = (id: string) => id.replaceAll(/[^a-zA-Z0-9_-]/g, '_')

/** The input must be an object, also where a model wrote something else. */
function toInput(text: string): Json {
  if (text.trim() === '') return {}
  try {
    return readToolInput(text) ?? { value: parseExact(text) }
  } catch {
    return { value: text }
  }
}
