type CanonicalMembers = { readonly [name: string]: CanonicalValue | undefined }
type CanonicalValue =
  | string
  | number
  | boolean
  | null
  | readonly CanonicalValue[]
  | CanonicalMembers

/**
 * JSON as RFC 8785 writes it: members in the order of their names by UTF-16 code units, which is how JavaScript compares
 * texts, no white space, and numbers and texts as ECMAScript prints them. What JSON cannot say exactly is refused.
 */
export function writeCanonical(value: CanonicalValue): string {
  if (Array.isArray(value)) return `[${value.map((item) => writeCanonical(item)).join(',')}]`
  if (typeof value === 'object' && value !== null) return writeObject(value as CanonicalMembers)
  if (typeof value === 'number' && !Number.isFinite(value)) throw notCanonical('a number', value)
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw notCanonical('a text with half a character', value)
  }
  return JSON.stringify(value)
}

function writeObject(members: CanonicalMembers): string {
  let written = ''
  for (const name of Object.keys(members).toSorted()) {
    const separator = written === '' ? '' : ','
    written += `${separator}${writeCanonical(name)}:${writeCanonical(members[name] as CanonicalValue)}`
  }
  return `{${written}}`
}

const notCanonical = (what: string, value: unknown) =>
  new Error(`A record cannot contain ${what} such as ${JSON.stringify(value)}.`)
