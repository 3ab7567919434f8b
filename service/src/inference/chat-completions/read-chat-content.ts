import type { Json } from '#inference/answer.ts'
import type { DocumentPart, ImagePart, Source, TextPart } from '#inference/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { isObject, listOf, objectOf, textOf } from './json-member.ts'

export type ContentPart = TextPart | ImagePart | DocumentPart | { type: 'refusal'; text: string }

export const invalid = (path: string, rule: string) =>
  new ApiError('invalid_request', `'${path}' ${rule}.`, { param: path })

/** The content of a message: a text, nothing, or parts. `path` is where it stands, for complaints. */
export function readContent(content: unknown, path: string): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return listOf(content).map((part, position) => readPart(part, `${path}[${position}]`))
}

function readPart(part: unknown, path: string): ContentPart {
  if (!isObject(part)) throw invalid(path, 'must be an object')
  switch (part['type']) {
    case 'text':
      return { type: 'text', text: requiredText(part, 'text', path) }
    case 'refusal':
      return { type: 'refusal', text: requiredText(part, 'refusal', path) }
    case 'image_url':
      return readImage(part, `${path}.image_url`)
    case 'file':
      return readFile(requiredObject(part, 'file', path), `${path}.file`)
    case 'input_audio':
      return readAudio(requiredObject(part, 'input_audio', path), `${path}.input_audio`)
    default:
      throw invalid(`${path}.type`, 'is not a known type of content')
  }
}

function requiredText(object: Json, member: string, path: string): string {
  const text = textOf(object[member])
  if (text === undefined) throw invalid(`${path}.${member}`, 'must be a string')
  return text
}

function requiredObject(object: Json, member: string, path: string): Json {
  const found = objectOf(object[member])
  if (!found) throw invalid(`${path}.${member}`, 'must be an object')
  return found
}

/** Many clients send the address itself in place of the object. */
function readImage(part: Json, path: string): ImagePart {
  const image = objectOf(part['image_url']) ?? { url: part['image_url'] }
  const url = requiredText(image, 'url', path)
  const detail = image['detail']
  const isKnown = detail === 'auto' || detail === 'low' || detail === 'high'
  const source: Source = url.startsWith('data:')
    ? readDataUrl(url, `${path}.url`)
    : { type: 'url', url }
  return { type: 'image', source, detail: isKnown ? detail : null }
}

function readFile(file: Json, path: string): DocumentPart {
  const title = textOf(file['filename']) ?? null
  const data = textOf(file['file_data'])
  if (data !== undefined) {
    return { type: 'document', source: readFileData(data, title, `${path}.file_data`), title }
  }
  const id = requiredText(file, 'file_id', path)
  return { type: 'document', source: { type: 'file', id }, title }
}

/** Plain text is read as text, so that it can be judged and written as such. */
function readFileData(data: string, title: string | null, path: string): DocumentPart['source'] {
  const source = data.startsWith('data:')
    ? readDataUrl(data, path)
    : { type: 'base64' as const, mediaType: mediaTypeOf(title), data }
  if (source.mediaType !== 'text/plain') return source
  return { type: 'text', text: Buffer.from(source.data, 'base64').toString('utf8') }
}

const mediaTypeOf = (title: string | null): string =>
  title?.toLowerCase().endsWith('.txt') ? 'text/plain' : 'application/pdf'

function readAudio(audio: Json, path: string): DocumentPart {
  const data = requiredText(audio, 'data', path)
  const mediaType = `audio/${requiredText(audio, 'format', path)}`
  return { type: 'document', source: { type: 'base64', mediaType, data }, title: null }
}

/** `data:image/png;base64,…`; only the beginning is searched, because the data may be megabytes. */
function readDataUrl(url: string, path: string) {
  const comma = url.indexOf(',')
  const [mediaType = '', ...parameters] = url.slice('data:'.length, Math.max(comma, 0)).split(';')
  if (comma === -1 || parameters.at(-1)?.toLowerCase() !== 'base64') {
    throw invalid(path, 'must be a data URL in base64')
  }
  const data = url.slice(comma + 1)
  return { type: 'base64' as const, mediaType: mediaType.toLowerCase() || 'text/plain', data }
}
