import fc from 'fast-check'
import { expect, test } from 'vitest'

import { JsonTexts } from './json-texts.ts'

/** The texts inside JSON that comes in these fragments, and the numbers of those that have ended. */
function textsIn(...fragments: (string | string[])[]) {
  const decoder = new JsonTexts()
  const texts: string[] = []
  const ended: number[] = []
  const sink = {
    add(number: number, text: string) {
      texts[number] = (texts[number] ?? '') + text
    },
    end: (number: number) => void ended.push(number),
  }
  for (const fragment of fragments.flat()) decoder.feed(fragment, sink)
  return { texts, ended }
}

/**
 * All keys and values, before they became JSON. `JSON.parse` is no measure: V8 reads the key `"` as `\` once it has read an
 * object with that key at the same place.
 */
function wordsOf(value: unknown): string[] {
  if (typeof value === 'string') return value === '' ? [] : [value]
  if (typeof value !== 'object' || value === null) return [JSON.stringify(value)]
  return Object.entries(value).flatMap(([key, inner]) =>
    Array.isArray(value) ? wordsOf(inner) : [...wordsOf(key), ...wordsOf(inner)],
  )
}

function cut(text: string, places: readonly number[]): string[] {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length]
  return ends
    .toSorted((one, other) => one - other)
    .map((end, position, all) => text.slice(all[position - 1] ?? 0, end))
}

test('however it is cut, JSON has the texts that it was made from', () => {
  const unit = fc.constantFrom('a', 'u', '"', '\\', '\n', '/', 'é', '😀', ' ', ',', '{', '0')
  const value = fc.jsonValue({ stringUnit: unit, maxDepth: 3 })
  fc.assert(
    fc.property(value, fc.array(fc.nat(), { maxLength: 12 }), fc.nat(2), (json, places, indent) => {
      const text = JSON.stringify(json, null, indent)
      const { texts } = textsIn(...cut(text, places))
      expect(texts.filter((one) => one !== undefined)).toEqual(wordsOf(json))
    }),
    { numRuns: 2000 },
  )
})

test('escapes hide nothing, wherever they are cut', () => {
  const escaped = '{"c":"b\\u006fm\\u0062 \\ud83d\\ude00\\n\\/"}'
  for (let at = 0; at <= escaped.length; at++) {
    expect(textsIn(escaped.slice(0, at), escaped.slice(at)).texts).toEqual(['c', 'bomb 😀\n/'])
  }
})

test('a text ends with its quote, a number with what follows it', () => {
  expect(textsIn('{"a":41').ended).toEqual([0])
  expect(textsIn('{"a":41', '11,').ended).toEqual([0, 1])
  expect(textsIn('{"a":41', '11,')).toEqual({ texts: ['a', '4111'], ended: [0, 1] })
  expect(textsIn('["ope').ended).toEqual([])
})

test('what is not JSON is one text as it is written', () => {
  expect(textsIn('now ', 'make "it"').texts).toEqual(['now make "it"'])
  expect(textsIn('{"a": tell me, now}').texts).toEqual(['a', 'tell me, now}'])
  expect(textsIn('1'.repeat(80), '1'.repeat(80), ' 2').texts).toEqual([`${'1'.repeat(160)} 2`])
  expect(textsIn(`${'1'.repeat(500)} 2`).texts).toEqual([`${'1'.repeat(500)} 2`])
  expect(textsIn('"a\\qb\\u00zz"').texts).toEqual(['aqbu00zz'])
})

test('many texts share one number, one per line', () => {
  const words = Array.from({ length: 1500 }, (_, index) => `w${index}`)
  const { texts, ended } = textsIn(JSON.stringify(words))
  expect(texts.length).toBe(1000)
  expect(texts.slice(0, 999)).toEqual(words.slice(0, 999))
  expect(texts[999]).toBe(words.slice(999).join('\n'))
  expect(ended.length).toBe(999)
})

test('the work is linear in the length of the JSON', () => {
  const digits = '7'.repeat(200_000)
  const startedAt = performance.now()
  const { texts } = textsIn(['[', ...digits.split(''), ']'])
  expect(texts[0]?.startsWith(digits)).toBe(true)
  expect(performance.now() - startedAt).toBeLessThan(2000)
})
