import type { Json } from '#formats/answer.ts'
import { isDataUrl, readDataUrl, readPlainText } from '#formats/data-url.ts'
import { foreignMembers } from '#formats/foreign-part.ts'
import { asObject, asText, listOf } from '#formats/json-values.ts'
import { invalidMember, needText } from '#formats/request-member.ts'
import type {
  ContentPart,
  DocumentPart,
  ForeignPart,
  ImagePart,
  Part,
  Source,
  TextPart,
} from '#formats/turn.ts'

/** The content of a message: a text, or a list of parts. */
export function readMessageContent(content: unknown, param: string): Part[] {
  return readList(content, param, (part, partParam) =>
    part['type'] === 'refusal'
      ? { type: 'refusal', text: needText(part, 'refusal', partParam) }
      : readContentPart(part, partParam),
  )
}

const textMembers = new Set(['type', 'text', 'logprobs', 'prompt_cache_breakpoint'])
const mediaMembers = ['type', 'detail', 'file_id', 'prompt_cache_breakpoint']
/** What is read of a part, or is a setting of it, by its type. */
const partMembers: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  ['input_text', textMembers],
  ['output_text', textMembers],
  ['text', textMembers],
  ['refusal', new Set(['type', 'refusal', 'prompt_cache_breakpoint'])],
  ['input_image', new Set([...mediaMembers, 'image_url'])],
  ['input_file', new Set([...mediaMembers, 'filename', 'file_data', 'file_url'])],
])
/** Of the two, only the data are read. */
const fileMembersWithData = new Set([...mediaMembers, 'filename', 'file_data'])
const noMembers: ReadonlySet<string> = new Set()

/** The unknown members of the parts of a content, such as the annotations of a text. */
export const readForeignContent = (content: unknown): ForeignPart[] =>
  listOf(content).flatMap((item) => {
    const part = asObject(item) ?? {}
    const known =
      part['type'] === 'input_file' && typeof part['file_data'] === 'string'
        ? fileMembersWithData
        : partMembers.get(part['type'])
    return foreignMembers(part, known ?? noMembers)
  })

/** The output of a tool: a text, or a list of parts. */
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
    const partParam = `${param}[${index}]`
    const part = asObject(item)
    if (!part) throw invalidMember(partParam, 'must be an object')
    return read(part, partParam)
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

/** A data URL, or bare base64, which is taken for a PDF: the only type that all upstreams read. */
function readFileData(data: string, param: string): DocumentPart['source'] {
  if (!isDataUrl(data)) return { type: 'base64', mediaType: 'application/pdf', data }
  const source = needDataUrl(data, param)
  return readPlainText(source) ?? source
}

const readUrl = (url: string, param: string): Source =>
  isDataUrl(url) ? needDataUrl(url, param) : { type: 'url', url }

function needDataUrl(url: string, param: string) {
  const source = readDataUrl(url)
  if (source?.mediaType.includes('/')) return source
  throw invalidMember(param, 'must be a data URL with a media type and base64')
}
