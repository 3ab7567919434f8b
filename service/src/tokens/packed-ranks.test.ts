import { expect, test } from 'vitest'

import { packRankTable, unpackRankTable } from './packed-ranks.ts'
import { loadRanks } from './ranks.ts'

test('a table that was packed is the same table, in memory that threads share', async () => {
  const table = await loadRanks('cl100k')
  const unpacked = unpackRankTable(packRankTable(table))
  expect(unpacked.longest).toBe(table.longest)
  for (const part of ['bytes', 'starts', 'slots'] as const) {
    expect(unpacked[part].length).toBe(table[part].length)
    expect(Buffer.compare(toBytes(unpacked[part]), toBytes(table[part]))).toBe(0)
    expect(unpacked[part].buffer).toBeInstanceOf(SharedArrayBuffer)
  }
})

test('a file that was cut off is refused', async () => {
  const packed = packRankTable(await loadRanks('cl100k'))
  expect(() => unpackRankTable(packed.subarray(0, packed.length - 1))).toThrow('incomplete')
})

const toBytes = ({ buffer, byteOffset, byteLength }: Uint8Array | Int32Array) =>
  Buffer.from(new Uint8Array(buffer, byteOffset, byteLength))
