import { expect, test } from 'vitest'

import { findJsonFault } from './json-fault.ts'

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
