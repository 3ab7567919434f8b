import { expect, test } from 'vitest'

import { toCredits, toUsd, writeUsd } from './money.ts'
import { describeAge, toUtc } from './time-words.ts'

const now = Date.UTC(2026, 10, 19, 12)

test.each([
  [0, 'just now'],
  [-59, 'just now'],
  [-60, '1 minute ago'],
  [-3 * 3600, '3 hours ago'],
  [2 * 86_400 + 5, 'in 2 days'],
  [-400 * 86_400, '1 year ago'],
])('%d seconds from now is "%s"', (seconds, expected) => {
  expect(describeAge(now + seconds * 1000, now, 'en')).toBe(expected)
})

test('the time of logs is in UTC', () => {
  expect(toUtc(new Date(now))).toBe('2026-11-19 12:00:00 UTC')
})

test.each([
  [0, '$0.00'],
  [25_000_000, '$25.00'],
  [1_234_500_000, '$1,234.50'],
  [1500, '$0.0015'],
])('%d credits are %s', (credits, expected) => {
  expect(writeUsd(credits, 'en-US')).toBe(expected)
  expect(toCredits(toUsd(credits))).toBe(credits)
})
