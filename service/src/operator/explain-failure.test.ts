import { expect, test } from 'vitest'

import { explainCommandFailure, requireSettings } from './explain-failure.ts'

const databaseError = (code: string, message: string) => Object.assign(new Error(message), { code })

test.each([
  ['42P01', 'relation "organization" does not exist'],
  ['3F000', 'schema "gatehouse" does not exist'],
])('%s, missing tables: says how to migrate', (code, message) => {
  expect(explainCommandFailure(databaseError(code, message))).toBe(
    'The database has no Gatehouse tables yet, or not all of them. Run `./dev migrate` (in the image: `gatehouse migrate`), then try again.',
  )
})

test('a missing database: says how to create it, and to migrate', () => {
  const text = explainCommandFailure(databaseError('3D000', 'database "gate" does not exist'))
  expect(text).toContain('does not exist (database "gate" does not exist). Create it')
  expect(text).toContain('./dev migrate')
})

test('a server that refuses or is not there: names DATABASE_URL and the reason', () => {
  const refused = databaseError('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:5432')
  const expected =
    'The database cannot be reached: connect ECONNREFUSED 127.0.0.1:5432. Check DATABASE_URL'
  expect(explainCommandFailure(refused)).toContain(expected)
  expect(explainCommandFailure(new AggregateError([refused], ''))).toContain(expected)
  expect(explainCommandFailure(databaseError('28P01', 'password authentication failed'))).toBe(
    'The database refuses the connection: password authentication failed. Check DATABASE_URL.',
  )
})

test('any other failure speaks for itself', () => {
  const locked = databaseError('55P03', 'canceling statement due to lock timeout')
  expect(explainCommandFailure(locked)).toBe('canceling statement due to lock timeout')
  expect(explainCommandFailure(new Error("No organization has the id 'x'."))).toContain("'x'")
  expect(explainCommandFailure('text')).toBe('text')
})

test('settings that are missing are named once, with what they are', () => {
  const names = ['DATABASE_URL', 'MASTER_KEYS'] as const
  expect(() => requireSettings(names, {})).toThrow(
    /^DATABASE_URL and MASTER_KEYS are not set\. .*\n {2}DATABASE_URL: .*\n {2}MASTER_KEYS: .*openssl rand/,
  )
  const given = { DATABASE_URL: 'postgres://x', MASTER_KEYS: '' }
  expect(() => requireSettings(names, given)).toThrow(/^MASTER_KEYS is not set\. /)
  expect(() => requireSettings(names, { ...given, MASTER_KEYS_FILE: '/x' })).not.toThrow()
})
