// Arrays as values of a statement. The driver would write them as text, where every quote of a JSON text is escaped and
// bytes are hexadecimal; its array functions were among the largest sources of garbage of a call.

/** An element that is a word of letters, digits and `:.-`, such as a number, a UUID or a time. */
type PlainElement = string | number | bigint

/** An array in PostgreSQL's text format, without escapes. */
export const plainArray = (elements: readonly PlainElement[]): string => `{${elements.join(',')}}`

/** PostgreSQL's own numbers of these types. */
const elementTypes = { text: 25, bytea: 17, jsonb: 3802 } as const
/** A `jsonb` in binary format is the version of that format, 1, and its text. */
const jsonbVersion = 1

const headBytes = 20
const lengthBytes = 4

/** An array in PostgreSQL's binary format, which the driver passes on as it is. */
export function binaryArray(
  type: keyof typeof elementTypes,
  elements: readonly (string | Buffer)[],
): Buffer {
  const versionBytes = type === 'jsonb' ? 1 : 0
  let size = headBytes
  for (const element of elements) size += lengthBytes + versionBytes + bytesIn(element)
  const buffer = Buffer.allocUnsafe(size)
  buffer.writeInt32BE(1, 0) // dimensions
  buffer.writeInt32BE(0, 4) // no element is null
  buffer.writeInt32BE(elementTypes[type], 8)
  buffer.writeInt32BE(elements.length, 12)
  buffer.writeInt32BE(1, 16) // the number of the first element
  let at = headBytes
  for (const element of elements) {
    const start = at + lengthBytes
    if (versionBytes > 0) buffer.writeUInt8(jsonbVersion, start)
    const end = start + versionBytes + put(element, buffer, start + versionBytes)
    buffer.writeInt32BE(end - start, at)
    at = end
  }
  return buffer
}

const bytesIn = (element: string | Buffer): number =>
  typeof element === 'string' ? Buffer.byteLength(element) : element.length

const put = (element: string | Buffer, buffer: Buffer, at: number): number =>
  typeof element === 'string' ? buffer.write(element, at) : element.copy(buffer, at)
