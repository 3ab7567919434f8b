import { randomBytes } from 'node:crypto'

export type IdKind = 'org' | 'proj' | 'key' | 'req' | 'pol' | 'polver'

// Crockford's alphabet in lower case: its order is the order of its bytes, so ids sort by time.
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** A kind and 24 base32 characters: 48 bits of milliseconds, then 72 random bits. */
export function createId(kind: IdKind, now: Date): string {
  const bytes = Buffer.alloc(15)
  bytes.writeUIntBE(now.getTime(), 0, 6)
  randomBytes(9).copy(bytes, 6)
  return `${kind}_${base32(bytes)}`
}

/** Five bytes become eight characters; the length must divide evenly. */
function base32(bytes: Buffer): string {
  let text = ''
  for (let start = 0; start < bytes.length; start += 5) {
    const group = bytes.readUIntBE(start, 5)
    // 40 bits exceed JavaScript's shifts: take them as two halves of 20.
    for (const half of [Math.floor(group / 2 ** 20), group % 2 ** 20]) {
      for (let shift = 15; shift >= 0; shift -= 5) text += alphabet[(half >> shift) & 31]
    }
  }
  return text
}

/** A UUID of version 7: 48 bits of milliseconds, then 74 random bits. */
export function createUuid(now: Date): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(now.getTime(), 0, 6)
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
