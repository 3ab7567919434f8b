import fc from 'fast-check'
import { expect, test } from 'vitest'

import { parseExact } from './exact-json.ts'

test.each([
  '{"id":1234567890123456789}',
  '[9007199254740993,-9007199254740993,1]',
  '{"a":{"b":[12345678901234567890123]}}',
  '{"large":1e400}',
])('%s is written as it was read', (text) => {
  expect(JSON.stringify(parseExact(text))).toBe(text)
})

test('everything else is parsed as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value)
      expect(JSON.stringify(parseExact(text))).toBe(text)
    }),
  )
  expect(parseExact('["1234567890123456789",1.5e300]')).toEqual(['1234567890123456789', 1.5e300])
})
