import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'

import { readKey } from './bind-mutation.ts'

const keyIn = (header: string | string[] | undefined) =>
  readKey({ headers: { 'idempotency-key': header } } as unknown as FastifyRequest)

test.each([
  ['k', 'k'],
  ['8e03978e-40d5-43e8-bc93-6894a57f9324', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
  ['!~#{}', '!~#{}'],
  ['k'.repeat(255), 'k'.repeat(255)],
  ['"k"', 'k'], // a structured-field string means what it quotes
  [`"${'k'.repeat(255)}"`, 'k'.repeat(255)],
  ['"', '"'],
  ['"k', '"k'],
  ['k"', 'k"'],
  ['K', 'K'],
])('%s is the key %s', (header, key) => {
  expect(keyIn(header)).toBe(key)
})

test('no header is no key', () => {
  expect(keyIn(undefined)).toBeUndefined()
})

test.each([
  '',
  '""',
  ' ',
  'a b',
  '"a b"',
  'a, b', // two headers, as Node joins them
  'k'.repeat(256),
  `"${'k'.repeat(256)}"`,
  'é',
  'k\u007f',
  'k\u0000',
  'k\n',
  '\tk',
])('%j is refused and not echoed', (header) => {
  expect(() => keyIn(header)).toThrow(
    expect.objectContaining({
      status: 422,
      code: 'invalid_parameter',
      param: 'header.Idempotency-Key',
      message: "'header.Idempotency-Key' must be 1 to 255 visible ASCII characters.",
    }),
  )
})
