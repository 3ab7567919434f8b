import { expect, test } from 'vitest'

import { chooseCoding } from './choose-coding.ts'

test.each([
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip;q=1.0, br;q=0.5', 'br'],
  ['GZIP', 'gzip'],
  ['br;q=0, gzip', 'gzip'],
  ['br;q=0.000', null],
  ['identity', null],
  ['brotli', null],
  ['', null],
  [undefined, null],
])('a browser that accepts %j gets %s', (accepted, expected) => {
  expect(chooseCoding(accepted, ['br', 'gzip'])).toBe(expected)
})

test('a file that is not compressed is sent as it is', () => {
  expect(chooseCoding('br', [])).toBe(null)
})
