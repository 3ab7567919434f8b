import { randomFillSync } from 'node:crypto'

export type IdKind =
  | 'org'
  | 'proj'
  | 'key'
  | 'req'
  | 'pol'
  | 'polver'
  | 'hist'
  | 'exp'
  | 'grd'
  | 'mem'
  | 'ses'
  | 'apr'
  | 'prop'

// Crockford's alphabet in lower case: its order is the order of its bytes, so ids sort by time.
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** A kind and 24 base32 characters: 48 bits of milliseconds, then 72 random bits. */
export function createId(kind: IdKind, now: Date): string {
  // 120 bits in six groups of 20, because JavaScript shifts no more than 32: 48 of the time, then 9 random bytes.
  const ms = now.getTime()
  const start = takeRandom(9)
  const low = ms % 2 ** 28
  const third = ((low & 0xff) << 12) | (random.readUInt16BE(start) >> 4)
  return (
    `${kind}_${fourCharacters(Math.floor(ms / 2 ** 28))}${fourCharacters(low >> 8)}` +
    `${fourCharacters(third)}${fourCharacters(random.readUIntBE(start + 1, 3) & 0xfffff)}` +
    `${fourCharacters(random.readUIntBE(start + 4, 3) >> 4)}${fourCharacters(random.readUIntBE(start + 6, 3) & 0xfffff)}`
  )
}

const pairs = Array.from(alphabet, (first) =>
  Array.from(alphabet, (second) => first + second),
).flat()

/** Twenty bits in base32. */
const fourCharacters = (bits: number) => `${pairs[bits >> 10]}${pairs[bits & 1023]}`

/** Random bytes in advance: to ask the system for a few takes as long as for thousands. None is used twice. */
const random = Buffer.alloc(8192)
let taken = random.length

/** Where the next random bytes begin; valid until the next call. */
function takeRandom(length: number): number {
  if (taken + length > random.length) {
    randomFillSync(random)
    taken = 0
  }
  taken += length
  return taken - length
}

/** A UUID of version 7: 48 bits of milliseconds, then 74 random bits. */
export function createUuid(now: Date): string {
  const start = takeRandom(16)
  const bytes = random.subarray(start, start + 16)
  bytes.writeUIntBE(now.getTime(), 0, 6)
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The lowest UUID that anything of this moment can have: one of version 7 begins with its time. */
export function firstUuidAt(moment: Date): string {
  const hex = Math.max(0, moment.getTime()).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

const uuid7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** The moment that a UUID of version 7 begins with; undefined for any other text. */
export function momentOfUuid(id: string): Date | undefined {
  const [, high, low] = uuid7.exec(id) ?? []
  return high ? new Date(Number.parseInt(`${high}${low}`, 16)) : undefined
}
