import { describe, expect, test } from 'vitest'

import { loadPatternEngine } from './pattern-engine.ts'
import { checkPattern, readPatternShape } from './pattern-shape.ts'

describe('the width of a pattern', () => {
  test.each([
    ['', 0],
    ['abc', 3],
    ['a|bcd|', 3],
    ['\\bab\\b', 2],
    ['^a{2,5}$', 5],
    ['[a-z0-9]{16}', 16],
    ['[^a]', 2],
    ['[a\\D]', 2],
    ['[\\p{L}]', 2],
    ['[[:alpha:]]', 1],
    ['[[:^alpha:]]', 2],
    ['[]a-]b', 2],
    ['.', 2],
    ['\\d\\w\\s', 3],
    ['\\S\\pL\\P{Greek}', 6],
    ['\u{1f600}', 2],
    ['[\u{1f600}-\u{1f64f}]', 2],
    ['\\x41\\x{1F600}', 3],
    ['(?i)straße', 6],
    ['(?:ab){2}(?P<name>c)?', 5],
    ['a{2', 3],
    ['a{,5}', 5],
    ['(?:a{10}){100}', 1_000],
    ['a*', Infinity],
    ['(?:ab+)?', Infinity],
    ['a{3,}', Infinity],
    ['(?:^|\\b)*', 0],
  ])('%s', (pattern, width) => {
    expect(readPatternShape(pattern)).toMatchObject({ width })
  })
})

test.each([
  ['ab$', true],
  ['(a|b\\z)+', true],
  ['(?m)a$', true],
  ['\\$[$]', false],
  ['\\bab\\b', false],
])('whether %s depends on the end of the text', (pattern, needsEnd) => {
  expect(readPatternShape(pattern)).toMatchObject({ needsEnd })
})

test.each([
  ['(a)\\1', 'back-references are not supported', 3],
  ['(?P<a>b)(?P=a)', 'back-references are not supported', 8],
  ['x(?=a)', 'look-around is not supported', 1],
  ['(?!a)', 'look-around is not supported', 0],
  ['(?<=a)b', 'look-around is not supported', 0],
  ['(?<!a)b', 'look-around is not supported', 0],
  ['(?>a)', 'this kind of group is not supported', 0],
  ['a**', 'repetition of a repetition', 0],
  ['*a', 'nothing to repeat', 0],
  ['a|+', 'nothing to repeat', 2],
  ['(?i)*', 'nothing to repeat', 0],
  ['b(a', 'missing )', 1],
  ['a)', 'unmatched )', 1],
  ['[a', 'missing ]', 0],
  ['[z-a]', 'the range ends before it starts', 1],
  ['[(?<]', 'write (?\\< in a class', 1],
  ['a{1001}', 'more than 1000 repetitions', 1],
  ['a{5,2}', 'the largest count is below the smallest', 1],
  ['((a{100}){10}){2}', 'repetitions multiply to more than 1000', 0],
  ['a\\', 'the pattern ends with a backslash', 1],
  ['\\Qa\\E', 'the escape \\Q is not supported', 0],
  ['\\p{Emoji}', 'unknown character property', 0],
  ['\\x{110000}', 'this is not the number of a character', 0],
  ['(?P<a>b)(?P<a>c)', 'two groups have the same name', 8],
  ['a\b', 'this is a backspace; a word boundary is written \\\\b', 1],
  ['a\nb', 'the character U+000A is " " in texts; write that instead', 1],
  ['a\\nb', 'the character U+000A is " " in texts; write that instead', 1],
  ['wait…', 'the character U+2026 is "..." in texts; write that instead', 4],
  ['a\u200bb', 'the character U+200B is removed from texts', 1],
  ['a\u0001b', 'the character U+0001 is removed from texts', 1],
  ['a\u2800b', 'the character U+2800 is removed from texts', 1],
  ['a\ud800', 'half of a surrogate pair', 1],
  ['a'.repeat(513), 'the pattern is longer than 512 characters', 512],
])('what is wrong with %s', (pattern, problem, offset) => {
  expect(readPatternShape(pattern)).toEqual({ problem, offset })
})

test('the deepest pattern is read', () => {
  expect(readPatternShape(`${'('.repeat(256)}${')'.repeat(256)}`)).toMatchObject({ width: 0 })
})

test('a character has as many units in all its cases', () => {
  const changed = Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code)).filter(
    (one) =>
      [one.toLowerCase(), one.toUpperCase()].some(
        (other) => Array.from(other).length === 1 && other.length !== one.length,
      ),
  )
  expect(changed).toEqual([])
})

test('the engine has the last word', () => {
  const engine = loadPatternEngine()
  expect(checkPattern(engine, 'a{2,5}')).toMatchObject({
    width: 5,
    needsEnd: false,
    compiled: { pattern: 'a{2,5}' },
  })
  expect(checkPattern(engine, '[[:nothing:]]')).toMatchObject({ problem: expect.any(String) })
})
