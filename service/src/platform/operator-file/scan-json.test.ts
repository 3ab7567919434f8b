import fc from 'fast-check'
import { expect, test } from 'vitest'

import { findJsonFault, scanJson } from './scan-json.ts'

const text = `{
  "scorers": [
    {
      "name": "first",
      "thresholds": { "hate": 2 }
    },
    { "name":
        "second" }
  ]
}`

test.each([
  [[], 1],
  [['scorers'], 2],
  [['scorers', 0], 3],
  [['scorers', 0, 'name'], 4],
  [['scorers', 0, 'thresholds', 'hate'], 5],
  [['scorers', 1, 'name'], 8],
])('case %#: a value is on the line where it starts', (path, line) => {
  expect(scanJson(text).lineOf(path)).toBe(line)
})

test('what is missing is on the line of the object that should have it', () => {
  expect(scanJson(text).lineOf(['scorers', 0, 'adapter'])).toBe(3)
  expect(scanJson(text).lineOf(['scorers', 7, 'name', 'first'])).toBe(2)
})

test('a member that is given twice is named', () => {
  expect(scanJson('{"a": {"b": 1, "c": 2, "\\u0062": 3}}').repeated).toEqual([['a', 'b']])
  expect(scanJson('{"a": {"b": 1}, "b": [{"b": 1}, {"b": 1}]}').repeated).toEqual([])
})

test.each([
  ['{"a": 1,\n "b": tru}', 2, 7],
  ['{"a": 1,\n}', 2, 1],
  ['{"a": 1}\n{}', 2, 1],
  ['{\n"a": "unfinished\n}', 2, 6],
  ["{'a': 1}", 1, 2],
  ['', 1, 1],
])('case %#: the place of the first fault', (faulty, line, column) => {
  expect(scanJson(faulty).fault).toEqual({ line, column })
})

test('what JSON.parse refuses has a fault, and what it accepts has none', () => {
  const valid = fc.json({ maxDepth: 5, stringUnit: 'binary' })
  const damaged = fc
    .tuple(valid, fc.nat(), fc.constantFrom('', ',', '"', '}', ']', '0', 'x', '\n', '\\'))
    .map(([json, place, piece]) => {
      const at = place % (json.length + 1)
      return json.slice(0, at) + piece + json.slice(at + 1)
    })
  fc.assert(
    fc.property(fc.oneof(valid, damaged), (json) => {
      expect(scanJson(json).fault === undefined).toBe(isJson(json))
    }),
    { numRuns: 2000 },
  )
})

test('a text that is nested too deeply is a fault and does not exhaust the stack', () => {
  expect(scanJson('['.repeat(50_000)).fault).toEqual({ line: 1, column: 22 })
})

test.each([
  ['', 1, 1, 'a value'],
  ['  \n ', 2, 2, 'a value'],
  ['{', 1, 2, "a name in double quotes or '}'"],
  ['[', 1, 2, "a value or ']'"],
  ['{"a": 1,\n}', 2, 1, 'a name in double quotes'],
  ['[1, 2,]', 1, 7, 'a value'],
  ['{"a" 1}', 1, 6, "':'"],
  ['{"a": }', 1, 7, 'a value'],
  ['{"a": 1 "b": 2}', 1, 9, "',' or '}'"],
  ['[1 2]', 1, 4, "',' or ']'"],
  ['[1}', 1, 3, "',' or ']'"],
  ["{'a': 1}", 1, 2, "a name in double quotes or '}'"],
  ['{"a": yes}', 1, 7, 'a value'],
  ['{"a": 01}', 1, 8, "',' or '}'"],
  ['{"a": "open\n"}', 1, 7, 'a string that ends on its line, with valid escapes'],
  ['{"a": "\\x"}', 1, 7, 'a string that ends on its line, with valid escapes'],
  ['{"a', 1, 2, 'a string that ends on its line, with valid escapes'],
  ['{} {}', 1, 4, 'the end of the file'],
  ['{"a": {"b": [1, {"c": 2}]},\r\n  // comment\r\n}', 2, 3, 'a name in double quotes'],
])('%j fails at line %d, column %d', (text, line, column, expected) => {
  expect(() => JSON.parse(text)).toThrow(SyntaxError)
  expect(findJsonFault(text)).toEqual({ line, column, expected })
})

test('a text that is JSON is read to its end', () => {
  const text = JSON.stringify({ a: [1, -2.5e3, 'x\\"\n', null, true, {}, []] })
  expect(findJsonFault(text)).toMatchObject({
    column: text.length + 1,
    expected: 'the end of the file',
  })
})

test('long strings and deep nesting do not exhaust the stack', () => {
  const text = `${'['.repeat(100_000)}"${'a'.repeat(1_000_000)}"`
  expect(findJsonFault(text)).toMatchObject({ column: text.length + 1, expected: "',' or ']'" })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
