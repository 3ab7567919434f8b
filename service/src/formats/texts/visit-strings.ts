import { isObject } from '#formats/json-values.ts'

type Visitor = {
  onText(text: string): void
  /** For encrypted or binary data. */
  onUnreadable(): void
  /** For the name of a member; absent where a provider chooses the names. */
  onName?(name: string): void
}

/** Members whose values a provider chooses from a fixed list, and ids. They say nothing to a reader. */
const identifiers: ReadonlySet<string> = new Set([
  'id',
  'model',
  'object',
  'role',
  'status',
  'type',
])
/** A sentence has no place in an identifier, whatever the member is called. */
const identifier = /^[\w.:/-]{0,128}$/

/** Members that hold encrypted or binary data. */
const unreadable: ReadonlySet<string> = new Set([
  'b64_json',
  'data',
  'encrypted_content',
  'encrypted_index',
  'file_data',
  'partial_image_b64',
])
/** Data in base64, and sealed state of this service. */
const encoded = /^[\w+/=.:@~-]*$/
const encodedUrl = /^data:[^,]{0,200};base64,[\w+/=-]*$/i

/** Visits the strings in a value that has no known form, in their order. `name` is the member that holds it. */
export function visitStrings(name: string, value: unknown, visitor: Visitor) {
  // Most members hold no object: they need no list.
  if (typeof value === 'string') return visitString(name, value, visitor)
  if (typeof value !== 'object') return
  // Not by recursion: an answer may be nested more deeply than the stack allows.
  const rest: Member[] = [{ name, value }]
  for (let next = rest.pop(); next; next = rest.pop()) {
    if (typeof next.value === 'string') visitString(next.name, next.value, visitor)
    else for (const part of partsOf(next).reverse()) rest.push(part)
    if (isObject(next.value)) for (const member in next.value) visitor.onName?.(member)
  }
}

type Member = { name: string; value: unknown }

function partsOf({ name, value }: Member): Member[] {
  if (Array.isArray(value)) return value.map((item: unknown) => ({ name, value: item }))
  if (!isObject(value)) return []
  return Object.entries(value).map(([member, inner]) => ({ name: member, value: inner }))
}

function visitString(name: string, text: string, { onText, onUnreadable }: Visitor) {
  const kind = kindOf(name, text)
  if (kind === 'text') onText(text)
  else if (kind === 'unreadable') onUnreadable()
}

/** Whether a string in this member is text, and not an identifier or data. */
export const isText = (name: string, value: unknown): value is string =>
  typeof value === 'string' && kindOf(name, value) === 'text'

function kindOf(name: string, text: string): 'text' | 'unreadable' | 'nothing' {
  if (text === '' || isIdentifier(name, text) || isSignature(name, text)) return 'nothing'
  const isData = (unreadable.has(name) && encoded.test(text)) || encodedUrl.test(text)
  return isData ? 'unreadable' : 'text'
}

const isIdentifier = (name: string, text: string) =>
  (identifiers.has(name) || name.endsWith('_id')) && identifier.test(text)

/** A signature seals reasoning that is judged itself: it hides nothing that a client could show. */
const isSignature = (name: string, text: string) => name === 'signature' && encoded.test(text)
