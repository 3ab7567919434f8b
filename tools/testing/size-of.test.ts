import { expect, onTestFinished, test, vi } from 'vitest'

import { sizeOf } from './size-of.ts'

const size = () => sizeOf({ usual: 10, long: 1000, variable: 'SOME_SIZE' })

test('a size is the usual one, the long one with --long, and what its variable says', () => {
  onTestFinished(() => void vi.unstubAllEnvs())
  vi.stubEnv('LONG_TESTS', undefined)
  expect(size()).toBe(10)
  vi.stubEnv('LONG_TESTS', '1')
  expect(size()).toBe(1000)
  vi.stubEnv('SOME_SIZE', '3')
  expect(size()).toBe(3)
})

test.each(['', '0', '-1', 'many', '1.5'])('%j is no size', (text) => {
  onTestFinished(() => void vi.unstubAllEnvs())
  vi.stubEnv('SOME_SIZE', text)
  expect(size).toThrow('SOME_SIZE takes a whole number.')
})
