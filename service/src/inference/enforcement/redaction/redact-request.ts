import { isUtf8 } from 'node:buffer'

import type { Json } from '#formats/answer.ts'
import { isDataUrl, readDataUrl } from '#formats/data-url.ts'
import { asText, isObject } from '#formats/json-values.ts'
import { isText } from '#formats/texts/visit-strings.ts'
import { isRawNumber } from '#platform/exact-json.ts'
import type { Steps } from '#platform/steps/steps.ts'

import { JoinedTexts, type ReadTogether, type TextPiece } from './joined-texts.ts'

/** What is done with the texts of a request. */
export type TextEditor<Piece = TextPiece> = {
  redact(text: string): Steps<string>
  /** Reads texts that their reader sees as one. */
  readonly readTogether: ReadTogether<Piece>
  /** One of them, of which it is known what stays and what is replaced. */
  write(text: string, pieces: readonly Piece[]): string
  /** The name of a speaker, which may have only some characters. */
  redactName(name: string): Steps<string>
  /** Whether a text that must not be edited contains something to redact; then it is left out. */
  mustWithhold(text: string): Steps<boolean>
  /** Edits the arguments of an earlier call: JSON, as a string or as an object. */
  editArguments(value: unknown): Steps<unknown>
  /** What edits the texts of a member of the request, and inside of an object in it, where that is another one. */
  at?(member: string): TextEditor<Piece>
  inside?(object: Json): TextEditor<Piece>
}

type Editing<Piece> = TextEditor<Piece> & { joined: JoinedTexts<Piece> }

/** Settings and identifiers of a call. The model does not read them. */
const kept: ReadonlySet<string> = new Set([
  'model',
  'tool_choice',
  'mcp_servers',
  'include',
  'prompt_cache_key',
  'flagged_categories',
])

/** What the caller says about itself, and the words at which the model stops. All of it is redacted, whatever it looks like. */
const scanned: ReadonlySet<string> = new Set([
  'user',
  'safety_identifier',
  'metadata',
  'client_metadata',
  'stop',
  'stop_sequences',
])

/**
 * Replaces personal data and secrets in the caller's own request, in any format. The turn must be read again from the result,
 * so that an upstream of any format gets the same texts.
 */
export function* editRequest<Piece>(request: Json, editor: TextEditor<Piece>): Steps<Json> {
  const editing = { ...editor, joined: new JoinedTexts(editor.readTogether) }
  yield* editing.joined.readConversation(request)
  return yield* mapMembers(request, editing, function* (name, value) {
    if (kept.has(name)) return value
    const own = editor.at ? { ...editing, ...editor.at(name) } : editing
    if (scanned.has(name)) return yield* editStrings(value, own)
    return yield* editValue(name, value, own)
  })
}

function* editStrings<Piece>(value: unknown, editing: Editing<Piece>): Steps<unknown> {
  if (typeof value === 'string') return yield* editing.redact(value)
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) items.push(yield* editStrings(item, editing))
    return items
  }
  if (!isObject(value) || isRawNumber(value)) return value
  return yield* mapMembers(value, editing, (_, inner) => editStrings(inner, editing))
}

/** Strings that are looked up, compared or run, at any place: names, addresses, and the values in schemas. */
const untouched: ReadonlySet<string> = new Set([
  'allowed_domains',
  'authorization',
  'blocked_domains',
  'const',
  'default',
  'definition',
  'enum',
  'examples',
  'file_url',
  'headers',
  'image_url',
  'name',
  'pattern',
  'required',
  'server_url',
  'url',
])

/** Not redacted even as objects, because they are values and not descriptions. */
const keptWhole: ReadonlySet<string> = new Set(['const', 'default', 'examples', 'headers'])

/** Members of a schema whose own members are schemas, under names that the caller chooses. */
const schemaMaps: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
])

function* editValue<Piece>(name: string, value: unknown, editor: Editing<Piece>): Steps<unknown> {
  if (name === 'arguments') return yield* editor.editArguments(value)
  const isWhole = keptWhole.has(name) || !isObject(value)
  if (untouched.has(name) && isWhole) return value
  if (typeof value === 'string') return yield* editString(name, value, editor)
  if (Array.isArray(value)) {
    yield* editor.joined.readList(value)
    const items: unknown[] = []
    for (const item of value) items.push(yield* editValue(name, item, editor))
    return items
  }
  if (!isObject(value) || isRawNumber(value)) return value
  if (!schemaMaps.has(name)) return yield* editObject(value, editor)
  return yield* mapMembers(value, editor, (_, schema) => editValue('', schema, editor))
}

function* editString<Piece>(name: string, text: string, editor: Editing<Piece>): Steps<string> {
  if (name === 'file_data' || isDataUrl(text)) return yield* editFile(text, editor)
  const isSaid = isText(name, text) || name === 'text' || name === 'content'
  return isSaid ? yield* editor.redact(text) : text
}

function* editObject<Piece>(object: Json, outside: Editing<Piece>): Steps<Json> {
  yield
  const editor = outside.inside ? { ...outside, ...outside.inside(object) } : outside
  if (isSealed(object)) return yield* withholdSealed(object, editor)
  if (isBase64Source(object)) return yield* editSource(object, editor)
  if (object['type'] === 'text' && typeof object['data'] === 'string') {
    return { ...object, data: yield* editor.redact(object['data']) }
  }
  const isCall = typeof object['name'] === 'string' && object['input'] !== undefined
  return yield* mapMembers(object, editor, (name, value) => {
    if (isCall && name === 'input') return editor.editArguments(value)
    const isSpeaker = name === 'name' && typeof value === 'string' && hasSpeaker(object)
    return isSpeaker ? editor.redactName(value) : editValue(name, value, editor)
  })
}

/** Whether the name in a message names a speaker. Otherwise it names a tool, and is looked up. */
const hasSpeaker = ({ role }: Json) =>
  typeof role === 'string' && role !== 'tool' && role !== 'function'

function* mapMembers<Piece>(
  object: Json,
  { joined, write }: Editing<Piece>,
  edit: (name: string, value: unknown) => Steps<unknown>,
): Steps<Json> {
  const members: [string, unknown][] = []
  for (const [name, value] of Object.entries(object)) {
    const pieces = joined.find(object, name)
    const isJoined = pieces && typeof value === 'string'
    members.push([name, isJoined ? write(value, pieces) : yield* edit(name, value)])
  }
  return Object.fromEntries(members)
}

/** The members that hold a seal: a signature over the reasoning, or the same reasoning in encrypted form. */
const seals = ['signature', 'encrypted_content', 'reasoning_signature']
const sealedTexts: ReadonlySet<string> = new Set([
  'thinking',
  'summary',
  'reasoning',
  'reasoning_content',
])

const isSealed = (object: Json) =>
  seals.some((seal) => typeof object[seal] === 'string' && object[seal] !== '')

/**
 * A seal is valid only for the text that it was made for, so that text is never edited: it is sent unchanged or not at all. The
 * provider reads the reasoning from the seal.
 */
function* withholdSealed<Piece>(object: Json, editor: Editing<Piece>): Steps<Json> {
  const isSealedText = (name: string) =>
    sealedTexts.has(name) || (object['type'] === 'reasoning' && name === 'content')
  const reasoning = Object.entries(object).filter(([name]) => isSealedText(name))
  const isWithheld = yield* mustWithholdAny(
    reasoning.map(([, value]) => value),
    editor,
  )
  return yield* mapMembers(object, editor, function* (name, value) {
    if (seals.includes(name)) return value
    if (!isSealedText(name)) return yield* editValue(name, value, editor)
    if (!isWithheld) return value
    return Array.isArray(value) ? [] : ''
  })
}

const typeName = /^[a-z_]{1,40}$/

function* mustWithholdAny<Piece>(value: unknown, editor: Editing<Piece>): Steps<boolean> {
  if (typeof value === 'string') return yield* editor.mustWithhold(value)
  let isAny = false
  if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      const isNamed = name === 'type' && typeof inner === 'string' && typeName.test(inner)
      if (!isNamed) isAny = (yield* mustWithholdAny(inner, editor)) || isAny
    }
  }
  return isAny
}

/** The source of a document or an image. */
const isBase64Source = ({ type, data }: Json) => type === 'base64' && typeof data === 'string'

function* editSource<Piece>(source: Json, editor: Editing<Piece>): Steps<Json> {
  const mediaType = asText(source['media_type']) ?? ''
  return { ...source, data: yield* editBase64(asText(source['data']) ?? '', mediaType, editor) }
}

/** A file as an address of data, or in bare base64, which says nothing of its type. */
function* editFile<Piece>(file: string, editor: Editing<Piece>): Steps<string> {
  const { mediaType, data } = isDataUrl(file)
    ? (readDataUrl(file) ?? { mediaType: '', data: null })
    : { mediaType: '', data: isBase64.test(file) ? file : null }
  if (data === null) return yield* editor.redact(file)
  const head = file.slice(0, file.length - data.length)
  return head + (yield* editBase64(data, mediaType, editor))
}

const isBase64 = /^[\w+/=\s-]*$/
const media = /^(?:image|audio|video)\//i

/** Most files that are not called text are text nevertheless, such as JSON. What is none is left as it is. */
function* editBase64<Piece>(
  data: string,
  mediaType: string,
  editor: Editing<Piece>,
): Steps<string> {
  if (media.test(mediaType)) return data
  const bytes = Buffer.from(data, 'base64')
  const isPdf = bytes.subarray(0, 5).toString('latin1') === '%PDF-'
  if (!mediaType.toLowerCase().startsWith('text/') && (isPdf || !isUtf8(bytes))) return data
  const text = bytes.toString()
  const redacted = yield* editor.redact(text)
  // Base64 can be written in several ways, so a file without findings stays exactly as it was sent.
  return redacted === text ? data : Buffer.from(redacted).toString('base64')
}
