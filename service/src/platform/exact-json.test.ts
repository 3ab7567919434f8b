import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import { durationRatio } from '@gatehouse/tools/testing/duration-ratio'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { parseExact, TooManyNumbers } from './exact-json.ts'

test.each([
  '{"id":1234567890123456789}',
  '[9007199254740993,-9007199254740993,1]',
  '{"a":{"b":[12345678901234567890123]}}',
  '{"large":1e400}',
])('%s is written as it was read', (text) => {
  expect(JSON.stringify(parseExact(text))).toBe(text)
})

test.each([
  '{"__proto__":1234567890123456789}',
  '1234567890123456789',
  '{"a":"\\"1234567890123456789","b":-1234567890123456789,"c":"\\\\"}',
])('%s is written as it was read, wherever the number is', (text) => {
  const parsed = parseExact(text)
  expect(JSON.stringify(parsed)).toBe(text)
  expect(JSON.stringify({ a: parsed })).toBe(`{"a":${text}}`)
})

test.each([
  '{1234567890123456789:1}',
  '[1234567890123456789.]',
  '[01234567890123456789]',
  '["a"1234567890123456789]',
  '[1234567890123456789',
  '"1234567890123456789',
])('%s is no JSON', (text) => {
  expect(() => parseExact(text)).toThrow(SyntaxError)
})

test('more than 10,000 numbers that a double cannot hold are refused', () => {
  const numbers = (length: number) => `[${Array(length).fill('1234567890123456789').join()}]`
  expect(JSON.stringify(parseExact(numbers(10_000)))).toBe(numbers(10_000))
  expect(() => parseExact(numbers(10_001))).toThrow(TooManyNumbers)
})

test('one such number among many values takes little more time than the parser', async () => {
  const text = JSON.stringify(Array.from({ length: 50_000 }, () => ({ a: 'b' })))
  const exact = `[1234567890123456789,${text.slice(1)}`
  const comparison = { work: () => parseExact(exact), baseline: () => JSON.parse(exact), limit: 8 }
  expect(await durationRatio('one unsafe number', comparison)).toBeLessThan(8)
})

/** As the service runs: V8 leaves its fast engine for regular expressions when one begins anew too often. */
const asServed = ['--enable-experimental-regexp-engine-on-excessive-backtracks']
const measure = `
  import { parseExact } from '${new URL('exact-json.ts', import.meta.url).href}'
  const text = JSON.stringify('4111 1111 1111 111 '.repeat(100_000))
  const msOf = (work) => { const startedAt = performance.now(); work(); return performance.now() - startedAt }
  const ratios = Array.from({ length: 5 }, () => msOf(() => parseExact(text)) / msOf(() => JSON.parse(text)))
  console.log(Math.min(...ratios))`

test('two megabytes of short numbers in a text take little more time than the parser', async () => {
  const args = [...asServed, '--input-type=module', '--eval', measure]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  console.log(`short numbers: ${Number(stdout).toFixed(1)} times the parser`)
  expect(Number(stdout)).toBeLessThan(15)
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
