import type { Category } from '#moderation/categories.ts'

import { bucketCount } from './features.ts'

/** The categories with trained weights, in the order of the file. */
export const heads = [
  'harassment',
  'hate',
  'illicit',
  'self-harm',
] as const satisfies readonly Category[]
export type Head = (typeof heads)[number]

export type Model = {
  /** The value of one step of a weight, per head. */
  readonly scales: Float32Array
  readonly biases: Float32Array
  /** Weights of -127 to 127; those of a bucket, one per head, are next to each other. */
  readonly weights: Int8Array
  /** Hashes of the sexual terms, each of one to three words. */
  readonly terms: ReadonlySet<number>
}

// The file: five numbers of 32 bits, little-endian (mark, version, heads, buckets, terms), the scales and biases of the
// heads, the terms in ascending order, and the weights.
const mark = 0x4d4f4447
const version = 1
const headerBytes = 5 * 4

export function encodeModel({ scales, biases, weights, terms }: Model): Buffer {
  const bytes = Buffer.alloc(modelBytes(terms.size))
  let at = 0
  const putNumber = (value: number) => (at = bytes.writeUInt32LE(value, at))
  const putFloat = (value: number) => (at = bytes.writeFloatLE(value, at))
  for (const value of [mark, version, heads.length, bucketCount, terms.size]) putNumber(value)
  for (const value of [...scales, ...biases]) putFloat(value)
  for (const term of [...terms].toSorted((a, b) => a - b)) putNumber(term)
  bytes.set(new Uint8Array(weights.buffer, weights.byteOffset, weights.length), at)
  return bytes
}

/** Throws if the bytes are not a model of this release. */
export function decodeModel(bytes: Buffer): Model {
  const header = Array.from({ length: 5 }, (_, index) => bytes.readUInt32LE(index * 4))
  const [, , , , termCount = 0] = header
  const expected = [mark, version, heads.length, bucketCount, termCount]
  if (header.join() !== expected.join() || bytes.length !== modelBytes(termCount)) {
    throw new Error('The model of the local scorer has another format than expected.')
  }
  let at = headerBytes
  const floats = () => Float32Array.from(heads, () => bytes.readFloatLE((at += 4) - 4))
  const scales = floats()
  const biases = floats()
  const terms = new Set<number>()
  for (let index = 0; index < termCount; index++) terms.add(bytes.readUInt32LE((at += 4) - 4))
  const weights = new Int8Array(heads.length * bucketCount)
  weights.set(bytes.subarray(at))
  return { scales, biases, terms, weights }
}

const modelBytes = (termCount: number) =>
  headerBytes + heads.length * 8 + termCount * 4 + heads.length * bucketCount
