import type { Json } from '#formats/answer.ts'
import { writeDataUrl } from '#formats/data-url.ts'
import type { DocumentPart, ImagePart, Part, TextPart, TurnMessage } from '#formats/turn.ts'

/**
 * The messages of a turn. Consecutive messages of one role are merged: many models expect roles to alternate, and
 * this format wants the tool calls of one turn in one message, with their results right after it.
 */
export const writeChatMessages = (messages: readonly TurnMessage[]): Json[] =>
  groupByRole(messages.filter(isWritten)).flatMap((group) =>
    writers[group[0]?.role ?? 'user'](group),
  )

/** Whether something of a message is left in this format: without it, the messages around it are consecutive. */
const isWritten = ({ role, parts }: TurnMessage) =>
  parts.some((part) => {
    if (part.type === 'tool_call' || part.type === 'refusal') return role === 'assistant'
    if (part.type === 'text') return role === 'user' || part.text !== ''
    return role === 'user' && (isResult(part) || isUserPart(part))
  })

function groupByRole(messages: readonly TurnMessage[]): TurnMessage[][] {
  const groups: TurnMessage[][] = []
  for (const message of messages) {
    const last = groups.at(-1)
    if (last?.[0]?.role === message.role) last.push(message)
    else groups.push([message])
  }
  return groups
}

type Of<Type extends Part['type']> = Extract<Part, { type: Type }>
type UserPart = TextPart | ImagePart | DocumentPart

const isResult = (part: Part): part is Of<'tool_result'> => part.type === 'tool_result'
const isUserPart = (part: Part): part is UserPart =>
  part.type === 'text' || part.type === 'image' || part.type === 'document'

function writeAssistant(group: readonly TurnMessage[]): Json[] {
  const texts: string[] = []
  let refusal = ''
  const calls: Json[] = []
  for (const { parts } of group) {
    let text = ''
    for (const part of parts) {
      if (part.type === 'text') text += part.text
      else if (part.type === 'refusal') refusal += part.text
      else if (part.type === 'tool_call') calls.push(writeCall(part))
    }
    if (text !== '') texts.push(text)
  }
  const text = texts.join('\n\n')
  if (text === '' && refusal === '' && calls.length === 0) return []
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      ...(refusal !== '' && { refusal }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ]
}

const writeCall = ({ id, name, arguments: given }: Of<'tool_call'>): Json => ({
  id,
  type: 'function',
  function: { name, arguments: given === '' ? '{}' : given },
})

/** A tool result can only be text here: its images and documents follow in a message of the user. */
function writeUser(group: readonly TurnMessage[]): Json[] {
  const written: Json[] = []
  const attachments: UserPart[] = []
  for (const { parts } of group) {
    for (const result of parts.filter(isResult)) {
      written.push(writeResult(result))
      for (const part of result.parts) if (!isTextual(part)) attachments.push(part)
    }
  }
  const messages = [attachments, ...group.map(({ parts }) => parts.filter(isUserPart))]
  const content = writeMerged(messages.filter((parts) => parts.length > 0))
  return content === null ? written : [...written, { role: 'user', content }]
}

/** One text: not every upstream accepts parts here. */
const writeSystem = (group: readonly TurnMessage[]): Json[] => [
  { role: 'system', content: group.flatMap(({ parts }) => parts.flatMap(textOf)).join('\n\n') },
]

const textOf = (part: Part) => (part.type === 'text' ? [part.text] : [])

const writers = { user: writeUser, assistant: writeAssistant, system: writeSystem }

/** Messages that are a text each stay a text, because not every upstream accepts parts. */
function writeMerged(messages: readonly (readonly UserPart[])[]): string | Json[] | null {
  if (messages.length === 0) return null
  const texts = messages.map(writeContent)
  const areTexts = texts.every((text) => typeof text === 'string')
  return areTexts ? texts.join('\n\n') : writeContent(messages.flat())
}

const isTextual = (part: UserPart) =>
  part.type === 'text' || (part.type === 'document' && part.source.type === 'text')

function writeResult({ callId, parts }: Of<'tool_result'>): Json {
  const texts = parts.filter(isTextual)
  return {
    role: 'tool',
    tool_call_id: callId,
    content: texts.length === 0 ? '' : writeContent(texts),
  }
}

/** A single text is written as a string, because not every upstream accepts parts. */
function writeContent(parts: readonly UserPart[]): string | Json[] {
  const [first] = parts
  if (parts.length === 1 && first?.type === 'text') return first.text
  const written = parts.flatMap(writePart)
  const [only] = written
  return written.length === 1 && typeof only?.['text'] === 'string' ? only['text'] : written
}

function writePart(part: UserPart): Json[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }]
    case 'image':
      return writeImage(part)
    case 'document':
      return [writeDocument(part)]
  }
}

function writeImage({ source, detail }: ImagePart): Json[] {
  // This format has no member for an image that is stored elsewhere.
  if (source.type === 'file') return []
  const url = source.type === 'url' ? source.url : writeDataUrl(source)
  return [{ type: 'image_url', image_url: { url, ...(detail && { detail }) } }]
}

function writeDocument({ source, title }: DocumentPart): Json {
  switch (source.type) {
    case 'text':
      return { type: 'text', text: titled(title, source.text) }
    case 'url':
      return { type: 'text', text: titled(title, source.url) }
    case 'file':
      return { type: 'file', file: { file_id: source.id } }
    case 'base64':
      if (source.mediaType.startsWith('audio/')) {
        const format = source.mediaType.slice('audio/'.length)
        return { type: 'input_audio', input_audio: { data: source.data, format } }
      }
      return {
        type: 'file',
        file: { filename: title ?? 'document.pdf', file_data: writeDataUrl(source) },
      }
  }
}

const titled = (title: string | null, text: string) =>
  title === null ? text : `${title}\n\n${text}`
