import type { Json } from '#inference/answer.ts'
import { isDataUrl, readDataUrl } from '#inference/data-url.ts'
import { foreignMembers } from '#inference/foreign-part.ts'
import { invalidMember, needText } from '#inference/request-member.ts'
import type {
  ContentPart,
  DocumentPart,
  ForeignPart,
  ImagePart,
  Part,
  Source,
  TextPart,
} from '#inference/turn.ts'
import { asObject, asText, listOf } from '#inference/untyped.ts'

/** The content of a message: a text, or a list of parts. */
export function readMessageContent(content: unknown, param: string): Part[] {
  return readList(content, param, (part, place) =>
    part['type'] === 'refusal'
      ? { type: 'refusal', text: needText(part, 'refusal', place) }
      : readContentPart(part, place),
  )
}

const partMembers: ReadonlySet<string> = new Set([
  ...['type', 'text', 'refusal', 'detail', 'image_url', 'file_id', 'filename', 'file_data'],
  ...['file_url', 'logprobs', 'prompt_cache_breakpoint'],
])

/** What the parts of a content say beyond what is read of them, such as what a text cites. */
export const readForeignContent = (content: unknown): ForeignPart[] =>
  listOf(content).flatMap((part) => foreignMembers(asObject(part) ?? {}, partMembers))

/** What a tool answered: a text, or a list of parts. */
export const readToolOutput = (output: unknown, param: string): ContentPart[] =>
  readList(output, param, readContentPart)

function readList<Kind>(
  value: unknown,
  param: string,
  read: (part: Json, param: string) => Kind | TextPart,
): (Kind | TextPart)[] {
  const text = asText(value)
  if (text !== undefined) return [{ type: 'text', text }]
  if (!Array.isArray(value)) throw invalidMember(param, 'must be a string or a list of parts')
  return listOf(value).map((item, index) => {
    const place = `${param}[${index}]`
    const part = asObject(item)
    if (!part) throw invalidMember(place, 'must be an object')
    return read(part, place)
  })
}

function readContentPart(part: Json, param: string): ContentPart {
  switch (part['type']) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: needText(part, 'text', param) }
    case 'input_image':
      return readImage(part, param)
    case 'input_file':
      return readDocument(part, param)
    default:
      throw invalidMember(`${param}.type`, 'is not a kind of part that is known here')
  }
}

function readDetail(detail: unknown): ImagePart['detail'] {
  if (detail === 'original') return 'high'
  return detail === 'auto' || detail === 'low' || detail === 'high' ? detail : null
}

function readImage(part: Json, param: string): ImagePart {
  const detail = readDetail(part['detail'])
  const url = asText(part['image_url'])
  if (url !== undefined) {
    return { type: 'image', source: readUrl(url, `${param}.image_url`), detail }
  }
  const id = asText(part['file_id'])
  if (id === undefined) throw invalidMember(param, 'needs an image_url or a file_id')
  return { type: 'image', source: { type: 'file', id }, detail }
}

function readDocument(part: Json, param: string): DocumentPart {
  const title = asText(part['filename']) ?? null
  const data = asText(part['file_data'])
  if (data !== undefined) {
    return { type: 'document', source: readFileData(data, `${param}.file_data`), title }
  }
  const url = asText(part['file_url'])
  if (url !== undefined) {
    return { type: 'document', source: readUrl(url, `${param}.file_url`), title }
  }
  const id = asText(part['file_id'])
  if (id === undefined) throw invalidMember(param, 'needs a file_data, a file_url or a file_id')
  return { type: 'document', source: { type: 'file', id }, title }
}

/** A data URL, or base64 without more: then it is a PDF, the only kind everybody reads. */
function readFileData(data: string, param: string): DocumentPart['source'] {
  if (!isDataUrl(data)) return { type: 'base64', mediaType: 'application/pdf', data }
  const source = needDataUrl(data, param)
  if (source.mediaType !== 'text/plain') return source
  return { type: 'text', text: Buffer.from(source.data, 'base64').toString() }
}

const readUrl = (url: string, param: string): Source =>
  isDataUrl(url) ? needDataUrl(url, param) : { type: 'url', url }

function needDataUrl(url: string, param: string) {
  const source = readDataUrl(url)
  if (source?.mediaType.includes('/')) return source
  throw invalidMember(param, 'must be a data URL with a media type and base64')
}
