import type { RankTable } from './rank-table.ts'

// A rank table as a file, so that a start need not compute it: the lengths of its parts and the longest token, then the parts.
// Numbers are in the byte order of the machine, which is the same for all that the service runs on.

const headerLength = 4
const numberBytes = Int32Array.BYTES_PER_ELEMENT

export function packRankTable({ bytes, starts, slots, longest }: RankTable): Uint8Array {
  const header = Int32Array.of(starts.length, slots.length, bytes.length, longest)
  const parts = [header, starts, slots, bytes].map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  )
  return Buffer.concat(parts)
}

/** Copies the table into memory that all threads share. */
export function unpackRankTable(packed: Uint8Array): RankTable {
  const memory = new SharedArrayBuffer(packed.byteLength)
  new Uint8Array(memory).set(packed)
  const [startsLength = 0, slotsLength = 0, bytesLength = 0, longest = 0] = new Int32Array(
    memory,
    0,
    headerLength,
  )
  const startsAt = headerLength * numberBytes
  const slotsAt = startsAt + startsLength * numberBytes
  const bytesAt = slotsAt + slotsLength * numberBytes
  if (bytesAt + bytesLength !== packed.byteLength) throw new Error('The ranks are incomplete.')
  return {
    starts: new Int32Array(memory, startsAt, startsLength),
    slots: new Int32Array(memory, slotsAt, slotsLength),
    bytes: new Uint8Array(memory, bytesAt, bytesLength),
    longest,
  }
}
