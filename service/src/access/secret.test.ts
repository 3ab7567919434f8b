import { randomBytes } from 'node:crypto'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createKeyHasher, formatKey, hasKeyShape, partsToKeep, redact } from './secret.ts'

const prefix = fc.constantFrom('gate_adm_', 'gate_prj_', 'gate_ses_')
const random = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes))
const key = fc.tuple(prefix, random).map(([start, bytes]) => formatKey(start, bytes))
const zeros = '0'.repeat(43)
const sample = formatKey('gate_adm_', Buffer.from('an example of 32 bytes, not rand'))

test.each([
  ['gate_adm_', `gate_adm_${zeros}1BVBOF`],
  ['gate_prj_', `gate_prj_${zeros}2tvo1y`],
  ['gate_ses_', `gate_ses_${zeros}2kRiZw`],
] as const)('32 zero bytes behind %s give %s', (start, expected) => {
  expect(formatKey(start, Buffer.alloc(32))).toBe(expected)
})

test('the highest 256 bits still fit into 43 characters', () => {
  const highest = formatKey('gate_prj_', Buffer.alloc(32, 0xff))
  expect(highest.length).toBe(58)
  expect(hasKeyShape(highest)).toBe(true)
})

test('any 32 bytes give 58 characters of the right shape, and no two the same', () => {
  fc.assert(
    fc.property(key, prefix, random, random, (text, start, one, other) => {
      expect(text).toMatch(/^gate_(adm|prj|ses)_[0-9A-Za-z]{49}$/)
      expect(text.length).toBe(58)
      expect(hasKeyShape(text)).toBe(true)
      expect(formatKey(start, one) === formatKey(start, other)).toBe(one.equals(other))
    }),
  )
})

test('a key with any one character changed does not have the shape', () => {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-é '
  fc.assert(
    fc.property(key, fc.nat(57), fc.constantFrom(...alphabet.split('')), (text, index, other) => {
      fc.pre(text[index] !== other)
      expect(hasKeyShape(text.slice(0, index) + other + text.slice(index + 1))).toBe(false)
    }),
    { numRuns: 2000 },
  )
})

test('a key with two adjacent characters swapped does not have the shape', () => {
  fc.assert(
    fc.property(key, fc.nat(56), (text, index) => {
      const [one = '', other = ''] = text.slice(index, index + 2).split('')
      fc.pre(one !== other)
      expect(hasKeyShape(text.slice(0, index) + other + one + text.slice(index + 2))).toBe(false)
    }),
  )
})

test.each([
  ['nothing', ''],
  ['a prefix', 'gate_adm_'],
  ['one character less', sample.slice(0, -1)],
  ['one character more', `${sample}0`],
  ['space before', ` ${sample}`],
  ['a line end', `${sample}\n`],
  ['another prefix', sample.replace('adm', 'prj')],
  ['capitals', sample.toUpperCase()],
  ['a second line', `x\n${sample}`],
  ['noise without end', 'gate_adm_'.repeat(10_000)],
])('%s is not a key', (_, text) => {
  expect(hasKeyShape(text)).toBe(false)
})

test('a redacted key shows its prefix, two characters and the last four', () => {
  const parts = partsToKeep('gate_adm_Zz345678901234567890123456789012345678901234RU98')
  expect(parts).toEqual({ hint8: 'Zz345678', last4: 'RU98' })
  expect(redact('gate_adm_', parts)).toBe('gate_adm_Zz...RU98')
})

test('the stored parts leave 35 of the 43 random characters unknown', () => {
  fc.assert(
    fc.property(key, (text) => {
      const { hint8, last4 } = partsToKeep(text)
      expect(text.startsWith(text.slice(0, 9) + hint8)).toBe(true)
      expect([hint8.length, last4.length]).toEqual([8, 4])
      expect(text.endsWith(last4)).toBe(true)
    }),
  )
})

const [first, second] = [1, 2].map((version) => ({ version, bytes: randomBytes(32) }))

test('a key is hashed with every pepper, the current one first', () => {
  const both = createKeyHasher([second!, first!])(sample)
  const [old] = createKeyHasher([first!])(sample)
  expect(both.map(({ version }) => version)).toEqual([2, 1])
  expect(both[1]).toEqual(old)
  expect(both[0].hash.equals(old.hash)).toBe(false)
})

test('the hash takes the whole key: a common beginning or end does not make it equal', () => {
  const hashKey = createKeyHasher([first!])
  const texts = [sample, sample.slice(0, -1), `${sample} `, sample.slice(1), sample.toLowerCase()]
  const hashes = texts.map((text) => hashKey(text)[0].hash.toString('hex'))
  expect(new Set(hashes).size).toBe(texts.length)
  expect(hashes.every((hash) => hash.length === 64)).toBe(true)
  expect(hashKey(sample)[0].hash.toString('hex')).toBe(hashes[0])
})
