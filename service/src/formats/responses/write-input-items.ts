import type { Json } from '#formats/answer.ts'
import { writeDataUrl } from '#formats/data-url.ts'
import type { ContentPart, ImagePart, Part, Source, TurnMessage } from '#formats/turn.ts'

/**
 * A conversation as items, in its order. Texts, images and documents that follow each other become one message, also
 * across messages of one role; calls, results and reasoning become items of their own.
 */
export function writeInput(messages: readonly TurnMessage[]): Json[] {
  const items: Json[] = []
  /** The message at the end of the items, while it may still grow. */
  let open: { role: TurnMessage['role']; content: Json[] } | undefined
  for (const { role, parts } of messages) {
    for (const part of parts) {
      const content = role === 'assistant' ? writeAssistantPart(part) : writeContent(part)
      if (content && open?.role === role) open.content.push(content)
      else if (content) {
        open = { role, content: [content] }
        items.push({
          type: 'message',
          role: role === 'system' ? 'developer' : role,
          content: open.content,
        })
      }
      const item = writeItem(part)
      if (!item) continue
      open = undefined
      items.push(item)
    }
  }
  return items
}

function writeItem(part: Part): Json | null {
  switch (part.type) {
    case 'tool_call':
      return {
        type: 'function_call',
        call_id: part.id,
        name: part.name,
        arguments: part.arguments,
      }
    case 'tool_result':
      return {
        type: 'function_call_output',
        call_id: part.callId,
        output: writeToolOutput(part.parts),
      }
    case 'reasoning':
      return isOwnReasoning(part) ? writeReasoning(part) : null
    case 'text':
    case 'image':
    case 'document':
    case 'refusal':
    case 'foreign':
      return null
  }
}

/** A provider that stores nothing can read a reasoning item only by its encrypted content. */
export const isOwnReasoning = (part: Part) =>
  part.type === 'reasoning' && part.opaque?.origin === 'responses'

const writeReasoning = ({ text, opaque }: Part & { type: 'reasoning' }): Json => ({
  type: 'reasoning',
  ...(opaque?.id && { id: opaque.id }),
  summary: text === '' ? [] : [{ type: 'summary_text', text }],
  encrypted_content: opaque?.data,
})

function writeToolOutput(parts: readonly ContentPart[]): string | Json[] {
  const [first, ...others] = parts
  if (!first) return ''
  if (first.type === 'text' && others.length === 0) return first.text
  return parts.map(writeContent).filter((part) => part !== null)
}

/** A part of an assistant's message, which has no images or files. */
function writeAssistantPart(part: Part): Json | null {
  if (part.type === 'text') return { type: 'output_text', text: part.text, annotations: [] }
  return part.type === 'refusal' ? { type: 'refusal', refusal: part.text } : null
}

function writeContent(part: Part): Json | null {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'input_text', text: part.text }
    case 'image':
      return writeImage(part)
    case 'document':
      return writeDocument(part)
    case 'tool_call':
    case 'tool_result':
    case 'reasoning':
    case 'foreign':
      return null
  }
}

const writeImage = ({ source, detail }: ImagePart): Json => ({
  type: 'input_image',
  detail: detail ?? 'auto',
  ...(source.type === 'file' ? { file_id: source.id } : { image_url: toUrl(source) }),
})

function writeDocument({ source, title }: Part & { type: 'document' }): Json {
  switch (source.type) {
    case 'text':
      return {
        type: 'input_text',
        text: title === null ? source.text : `${title}\n\n${source.text}`,
      }
    case 'base64':
      return { type: 'input_file', filename: title ?? 'document.pdf', file_data: toUrl(source) }
    case 'url':
      return {
        type: 'input_file',
        ...(title !== null && { filename: title }),
        file_url: source.url,
      }
    case 'file':
      return { type: 'input_file', file_id: source.id }
  }
}

const toUrl = (source: Exclude<Source, { type: 'file' }>) =>
  source.type === 'url' ? source.url : writeDataUrl(source)
