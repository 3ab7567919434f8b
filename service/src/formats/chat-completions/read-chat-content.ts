import type { Json } from '#formats/answer.ts'
import { isDataUrl, readDataUrl, readPlainText } from '#formats/data-url.ts'
import { asObject, asText, isObject, listOf } from '#formats/json-values.ts'
import { invalidMember, needObject, needText } from '#formats/request-member.ts'
import type { ContentPart, DocumentPart, ImagePart, Source } from '#formats/turn.ts'

export type ChatPart = ContentPart | { type: 'refusal'; text: string }

/** The content of a message: a text, nothing, or parts. `path` is its place, for errors. */
export function readContent(content: unknown, path: string): ChatPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return listOf(content).map((part, position) => readPart(part, `${path}[${position}]`))
}

function readPart(part: unknown, path: string): ChatPart {
  if (!isObject(part)) throw invalidMember(path, 'must be an object')
  switch (part['type']) {
    case 'text':
      return { type: 'text', text: needText(part, 'text', path) }
    case 'refusal':
      return { type: 'refusal', text: needText(part, 'refusal', path) }
    case 'image_url':
      return readImage(part, `${path}.image_url`)
    case 'file':
      return readFile(needObject(part, 'file', path), `${path}.file`)
    case 'input_audio':
      return readAudio(needObject(part, 'input_audio', path), `${path}.input_audio`)
    default:
      throw invalidMember(`${path}.type`, 'is not a known type of content')
  }
}

/** Many clients send the address itself instead of the object. */
function readImage(part: Json, path: string): ImagePart {
  const image = asObject(part['image_url']) ?? { url: part['image_url'] }
  const url = needText(image, 'url', path)
  const detail = image['detail']
  const isKnown = detail === 'auto' || detail === 'low' || detail === 'high'
  const source: Source = isDataUrl(url) ? needDataUrl(url, `${path}.url`) : { type: 'url', url }
  return { type: 'image', source, detail: isKnown ? detail : null }
}

function readFile(file: Json, path: string): DocumentPart {
  const title = asText(file['filename']) ?? null
  const data = asText(file['file_data'])
  if (data !== undefined) {
    return { type: 'document', source: readFileData(data, title, `${path}.file_data`), title }
  }
  const id = needText(file, 'file_id', path)
  return { type: 'document', source: { type: 'file', id }, title }
}

/** Plain text is read as text, so that policies can judge it and writers can write it as text. */
function readFileData(data: string, title: string | null, path: string): DocumentPart['source'] {
  const source = isDataUrl(data)
    ? needDataUrl(data, path)
    : { type: 'base64' as const, mediaType: mediaTypeOf(title), data }
  return readPlainText(source) ?? source
}

const mediaTypeOf = (title: string | null): string =>
  title?.toLowerCase().endsWith('.txt') ? 'text/plain' : 'application/pdf'

function readAudio(audio: Json, path: string): DocumentPart {
  const data = needText(audio, 'data', path)
  const mediaType = `audio/${needText(audio, 'format', path)}`
  return { type: 'document', source: { type: 'base64', mediaType, data }, title: null }
}

/** Data without a media type is plain text. */
function needDataUrl(url: string, path: string) {
  const source = readDataUrl(url)
  if (!source) throw invalidMember(path, 'must be a data URL in base64')
  return { ...source, mediaType: source.mediaType || 'text/plain' }
}
