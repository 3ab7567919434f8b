import fc from 'fast-check'
import { expect, test } from 'vitest'

import { withoutSinkSecrets } from './without-secrets.ts'

const secret = 'b6C1f0e2-9d3A-4f57/8+1c2d3e4f5a6b='

test('a secret is not quoted, whole or in part, in other letters or encodings', () => {
  const echoes = [
    secret,
    secret.toUpperCase(),
    secret.slice(3, 14),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    Buffer.from(`${secret}!`).toString('base64'),
  ]
  for (const echo of echoes) {
    const quoted = withoutSinkSecrets(`The token <${echo}> is wrong.`, [undefined, secret])
    expect(quoted).toMatch(/^The token <\*\*\*.{0,7}> is wrong\.$/)
  }
})

test('no eight letters of a secret are left, wherever it stands', () => {
  const hex = fc.string({
    unit: fc.constantFrom(...'0123456789abcdef'.split('')),
    minLength: 8,
    maxLength: 40,
  })
  fc.assert(
    fc.property(fc.string(), hex, fc.string(), fc.nat(40), (before, given, after, cut) => {
      const quoted = withoutSinkSecrets(before + given.slice(0, Math.max(8, cut)) + after, [given])
      for (let index = 0; index + 8 <= given.length; index += 1) {
        expect(quoted.toLowerCase()).not.toContain(given.slice(index, index + 8))
      }
    }),
  )
})

test('a text without secrets stays as it is, and a short secret is removed as a whole', () => {
  expect(withoutSinkSecrets('İ Index not found', [secret])).toBe('İ Index not found')
  expect(withoutSinkSecrets('pw1 is wrong, says pw1', ['pw1'])).toBe('*** is wrong, says ***')
})
