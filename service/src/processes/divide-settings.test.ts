import { expect, test } from 'vitest'

import { divideSettings } from './divide-settings.ts'

const settings = {
  ROLES: ['api', 'worker'] as const,
  PORT: 0,
  PROCESSES: 4,
  BODY_MEMORY_MB: 1000,
  CONNECTIONS_MAX: 500,
}

test('the worker runs in the first process only', () => {
  const rolesOf = (number: number) => divideSettings(settings, { number, port: 1 }).ROLES
  expect([1, 2, 3, 4].map(rolesOf)).toEqual([['api', 'worker'], ['api'], ['api'], ['api']])
})

test('all get the same port and an equal part of the memory for bodies', () => {
  expect(divideSettings(settings, { number: 2, port: 8080 })).toEqual({
    ...settings,
    ROLES: ['api'],
    PORT: 8080,
    BODY_MEMORY_MB: 250,
  })
})

test('the memory of each process still has room for the largest body', () => {
  const small = { ...settings, BODY_MEMORY_MB: 256 }
  expect(divideSettings(small, { number: 1, port: 1 }).BODY_MEMORY_MB).toBe(128)
})
