import { expect, test } from 'vitest'

import { judgePoll, slowerThan } from './judge-poll.ts'

const now = new Date('2026-03-01T12:00:00Z')
const ago = (ms: number) => new Date(now.getTime() - ms)
const waiting = {
  interval_seconds: 5,
  polled_at: null,
  expires_at: ago(-1),
  refused_at: null,
  session_id: null,
}

test.each([
  [{}, 'authorization_pending'],
  [{ polled_at: ago(5000) }, 'authorization_pending'],
  [{ polled_at: ago(4500) }, 'authorization_pending'],
  [{ polled_at: ago(4499) }, 'slow_down'],
  [{ polled_at: ago(-60_000) }, 'slow_down'],
  [{ session_id: 'ses_1' }, 'confirmed'],
  [{ session_id: 'ses_1', polled_at: ago(1) }, 'slow_down'],
  [{ refused_at: ago(1) }, 'access_denied'],
  [{ session_id: 'ses_1', expires_at: now }, 'expired_token'],
  [{ refused_at: ago(1), expires_at: now }, 'expired_token'],
])('%j is %s', (change, expected) => {
  expect(judgePoll({ ...waiting, ...change }, now)).toBe(expected)
})

test('who asks too often waits five seconds longer each time, and a minute at most', () => {
  expect([5, 10, 55, 58, 60].map(slowerThan)).toEqual([10, 15, 60, 60, 60])
})
