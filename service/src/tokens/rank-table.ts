/**
 * The tokens of an encoding, in memory that all threads share: a map of strings would take tens of megabytes in each.
 * The rank of a token is its position.
 */
export type RankTable = {
  /** The bytes of all tokens, one after another. */
  bytes: Uint8Array
  /** Where each token starts; it ends where the next one starts. */
  starts: Int32Array
  /** A hash table of ranks, with open addressing; its length is a power of two. */
  slots: Int32Array
  longest: number
}

export const noRank = -1

/** @param tokens The tokens in the order of their ranks, in base64 and separated by spaces. */
export function createRankTable(tokens: string): RankTable {
  const bytes = new Uint8Array(new SharedArrayBuffer(Math.ceil((tokens.length / 4) * 3)))
  const count = countSpaces(tokens) + 1
  const starts = new Int32Array(new SharedArrayBuffer((count + 1) * 4))
  const slots = new Int32Array(new SharedArrayBuffer(2 ** Math.ceil(Math.log2(count * 2)) * 4))
  slots.fill(noRank)
  const table: RankTable = { bytes, starts, slots, longest: 0 }
  let position = 0
  for (let rank = 0, end = 0; rank < count; rank++) {
    end = decodeToken(tokens, position, bytes, starts[rank] ?? 0)
    position = tokens.indexOf(' ', position) + 1
    starts[rank + 1] = end
    insert(table, rank)
  }
  return table
}

/** The rank of some bytes of a latin-1 string; `noRank` if they are not a token. */
export function rankOf(table: RankTable, text: string, start: number, end: number): number {
  const { slots } = table
  if (end - start > table.longest) return noRank
  let hash = hashSeed
  for (let index = start; index < end; index++) hash = mix(hash, text.charCodeAt(index))
  for (let slot = firstSlot(hash, slots); ; slot = (slot + 1) & (slots.length - 1)) {
    const rank = slots[slot] ?? noRank
    if (rank === noRank) return noRank
    if (isOfLength(table, rank, end - start) && isToken(table, rank, text, start)) return rank
  }
}

/** Whether a token has these bytes, of which there are as many as in the token. */
function isToken({ bytes, starts }: RankTable, rank: number, text: string, start: number): boolean {
  const first = starts[rank] ?? 0
  const length = (starts[rank + 1] ?? 0) - first
  for (let index = 0; index < length; index++) {
    if (bytes[first + index] !== text.charCodeAt(start + index)) return false
  }
  return true
}

function isOfLength({ starts }: RankTable, rank: number, length: number): boolean {
  return (starts[rank + 1] ?? 0) - (starts[rank] ?? 0) === length
}

function insert(table: RankTable, rank: number) {
  const { bytes, starts, slots } = table
  const [start = 0, end = 0] = starts.subarray(rank, rank + 2)
  let hash = hashSeed
  for (let index = start; index < end; index++) hash = mix(hash, bytes[index] ?? 0)
  let slot = firstSlot(hash, slots)
  while (slots[slot] !== noRank) slot = (slot + 1) & (slots.length - 1)
  slots[slot] = rank
  table.longest = Math.max(table.longest, end - start)
}

// The FNV-1a hash.
const hashSeed = 0x811c9dc5
const mix = (hash: number, byte: number) => Math.imul(hash ^ byte, 0x01000193)
/** The lower bits are mixed worst, so the upper ones are added to them. */
const firstSlot = (hash: number, slots: Int32Array) => (hash ^ (hash >>> 15)) & (slots.length - 1)

function countSpaces(text: string): number {
  let spaces = 0
  for (let at = text.indexOf(' '); at >= 0; at = text.indexOf(' ', at + 1)) spaces++
  return spaces
}

const base64Digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const base64Value = new Uint8Array(128)
for (const [value, code] of Buffer.from(base64Digits).entries()) base64Value[code] = value
const padding = '='.charCodeAt(0)
const space = ' '.charCodeAt(0)

/** Decodes one token and returns where its bytes end. Two hundred thousand buffers would be much garbage. */
function decodeToken(text: string, start: number, bytes: Uint8Array, at: number): number {
  let bits = 0
  let bitCount = 0
  let end = at
  for (let index = start; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === padding || code === space) break
    bits = ((bits << 6) | (base64Value[code] ?? 0)) & 0xffff
    bitCount += 6
    if (bitCount < 8) continue
    bitCount -= 8
    bytes[end++] = bits >> bitCount
  }
  return end
}
