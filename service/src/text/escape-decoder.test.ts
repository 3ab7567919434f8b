import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'

import { decodeEscapes, EscapeDecoder, hasEscape } from './escape-decoder.ts'

describe('decodeEscapes', () => {
  test.each([
    ['nothing to decode', 'nothing to decode'],
    ['a\\nb', 'a\nb'],
    ['\\"\\/\\b\\f\\r\\t', '"/  \r\t'],
    ['Projet \\u00c9clair', 'Projet Éclair'],
    ['\\ud83d\\ude00', '😀'],
    ['JSON in JSON: \\\\n and \\\\\\\\u0041', 'JSON in JSON: \n and A'],
    ['C:\\quiet \\x \\u12 \\', 'C:\\quiet \\x \\u12 \\'],
  ])('%s', (text, decoded) => {
    expect(finish(decodeEscapes(text))).toBe(decoded)
  })

  test('backslashes without end are text', () => {
    const text = '\\'.repeat(1000)
    const decoder = new EscapeDecoder()
    expect(decoder.push(text).length).toBeGreaterThan(900)
  })
})

test('hasEscape says whether decoding changes a text', () => {
  expect(hasEscape('a\\nb')).toBe(true)
  expect(hasEscape('a\\qb')).toBe(false)
})

const text = fc
  .array(
    fc.constantFrom('\\', 'u', 'n', '"', '0', '4', '1', 'x', ' ', '\\u0041', '\\'.repeat(40)),
    {
      maxLength: 60,
    },
  )
  .map((parts) => parts.join(''))

test('the pieces make no difference, and every character leads back to its escape', () => {
  fc.assert(
    fc.property(text, fc.array(fc.nat(8)), (whole, lengths) => {
      const decoder = new EscapeDecoder()
      let decoded = ''
      let at = 0
      for (const length of lengths) {
        decoded += decoder.push(whole.slice(at, at + length))
        at += length
      }
      decoded += decoder.push(whole.slice(at)) + decoder.end()
      expect(decoded).toBe(finish(decodeEscapes(whole)))
      const offsets = Array.from({ length: decoded.length }, (_, at) => decoder.originalOffset(at))
      expect(offsets).toEqual(offsets.toSorted((a, b) => a - b))
      for (const [index, offset] of offsets.entries()) {
        const isEscape = whole.charAt(offset) === '\\'
        if (!isEscape) expect(whole.charAt(offset)).toBe(decoded.charAt(index))
      }
      expect(decoder.originalOffset(decoded.length)).toBe(whole.length)
    }),
  )
})

test('a long run of backslashes takes no longer than other text', () => {
  const startedMs = performance.now()
  expect(hasEscape('\\'.repeat(4_000_000))).toBe(false)
  expect(finish(decodeEscapes('\\'.repeat(4_000_000)))).toHaveLength(4_000_000)
  expect(performance.now() - startedMs).toBeLessThan(2000)
})
