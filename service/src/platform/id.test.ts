import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createId } from './id.ts'

const now = new Date('2026-11-15T00:00:00.123Z')
const time = fc.integer({ min: 0, max: 2 ** 48 - 1 })
const timePart = (id: string) => id.slice('req_'.length, 'req_'.length + 9)

test.each(['org', 'proj', 'key', 'req'] as const)('%s and 24 base32 characters', (kind) => {
  expect(createId(kind, now)).toMatch(new RegExp(`^${kind}_[0-9a-hjkmnp-tv-z]{24}$`))
})

test('an id begins with the time: 45 bits in 9 characters, 3 in the next', () => {
  const digits = '0123456789abcdefghjkmnpqrstvwxyz'
  fc.assert(
    fc.property(time, (ms) => {
      const id = createId('req', new Date(ms))
      const front = Array.from(timePart(id), (each) => digits.indexOf(each))
      expect(front.reduce((sum, digit) => sum * 32 + digit, 0)).toBe(Math.floor(ms / 8))
      expect(Math.floor(digits.indexOf(id.charAt(13)) / 4)).toBe(ms % 8)
    }),
  )
})

test('ids sort by time, as text and as bytes', () => {
  fc.assert(
    fc.property(time, fc.integer({ min: 1, max: 1_000_000 }), (ms, laterBy) => {
      fc.pre(ms + laterBy < 2 ** 48)
      const [early, late] = [ms, ms + laterBy].map((each) => createId('req', new Date(each)))
      expect(early! < late!).toBe(true)
      expect(Buffer.compare(Buffer.from(early!), Buffer.from(late!))).toBe(-1)
    }),
  )
})

test('100,000 ids of one millisecond are all different', () => {
  const ids = Array.from({ length: 100_000 }, () => createId('req', now))
  expect(new Set(ids).size).toBe(ids.length)
})

test('every character behind the time is random', () => {
  const ids = Array.from({ length: 2000 }, () => createId('req', now))
  for (let index = 14; index < 28; index++) {
    expect(new Set(ids.map((id) => id.charAt(index))).size).toBe(32)
  }
})
