import { isUtf8 } from 'node:buffer'

/** The bytes of lower-case hexadecimal digits; undefined for another spelling or length. */
export function bytesFromHex(value: unknown, length: number): Buffer | undefined {
  if (typeof value !== 'string' || value.length !== length * 2) return undefined
  const bytes = Buffer.from(value, 'hex')
  return bytes.toString('hex') === value ? bytes : undefined
}

/** The bytes of base64 in its one canonical spelling. */
export function bytesFromBase64(value: unknown, length: number): Buffer | undefined {
  if (typeof value !== 'string') return undefined
  const bytes = Buffer.from(value, 'base64')
  return bytes.length === length && bytes.toString('base64') === value ? bytes : undefined
}

/** Bytes that are not UTF-8 would otherwise become replacement characters, and different files the same text. */
export const textFrom = (bytes: Buffer): string | undefined =>
  isUtf8(bytes) ? bytes.toString('utf8') : undefined

/** A number of records: org_seq, the size of a tree. */
export const isSize = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) > 0
