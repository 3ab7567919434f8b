import { expect, test } from 'vitest'

import { createRandom } from '#testing/fault-proxy.ts'

import type { Attempt, Limits } from './limits.ts'
import { admit, createWindows, settle, type Windows } from './rolling-window.ts'
import { limitsByTier } from './tiers.ts'

// Clients that wait as long as Retry-After says (whole seconds, rounded up) and a little more.
//
// Who is alone in its organization is never refused twice in a row: the wait is exact for the windows, and
// for a slot it is longer than its own calls last here. With others in the same organization nobody can promise
// that: what gets free may be taken by whoever comes first. What holds then is that who is refused again
// has been overtaken (somebody else was let in meanwhile), and that everybody gets through.

const seed = Number(process.env['LIMIT_SEED'] ?? Date.now() % 2 ** 31)
const clients = 1000
const startMs = 1_700_000_000_000
const jitterMs = 500

const retryAfterMs = (waitMs: number) => Math.ceil(waitMs / 1000) * 1000

type Random = () => number
const upTo = (random: Random, most: number) => Math.floor(random() * (most + 1))

function randomLimits(random: Random): Limits {
  const [requests, tokens] = [1 + upTo(random, 20), 2000 + upTo(random, 20_000)]
  const times = (factor: number) => ({
    requests_per_minute: Math.ceil(requests * factor),
    requests_per_day: Math.ceil((20 + upTo(random, 100)) * factor),
    tokens_per_minute: Math.ceil(tokens * factor),
    tokens_per_day: Math.ceil(tokens * 4 * factor),
    concurrent_requests: Math.ceil((1 + upTo(random, 5)) * factor),
  })
  return { organization: times(2), project: times(1.5), key: times(1) }
}

type Running = { attempt: Attempt; admittedAtMs: number; endsAtMs: number; used: number }

function endCalls(state: Windows, running: Running[], nowMs: number): Running[] {
  for (const { attempt, admittedAtMs, endsAtMs, used } of running) {
    if (endsAtMs > nowMs) continue
    settle(state, { ...attempt, reserved: attempt.tokens, used, admittedAtMs }, endsAtMs)
  }
  return running.filter(({ endsAtMs }) => endsAtMs > nowMs)
}

/** A client alone, with calls of random size, pace and length; returns how often it was refused. */
function runAlone(random: Random, organizationId: string): Record<string, number> {
  const limits = randomLimits(random)
  const paceMs = 1 + upTo(random, 20_000)
  const state = createWindows()
  const refusals: Record<string, number> = {}
  let [nowMs, running] = [startMs + upTo(random, 3_600_000), [] as Running[]]
  for (let call = 0; call < 60; call++) {
    nowMs += upTo(random, paceMs)
    const place = { organizationId, projectId: 'p', keyId: `k${upTo(random, 2)}` }
    const tokens = upTo(random, 2000)
    const attempt = { ...place, tokens, leaseId: `${call}`, leaseMs: 60_000 }
    running = endCalls(state, running, nowMs)
    let verdict = admit(state, attempt, limits, nowMs)
    if (verdict.refusal) {
      const { metric, waitMs } = verdict.refusal
      refusals[metric] = (refusals[metric] ?? 0) + 1
      nowMs += retryAfterMs(waitMs) + upTo(random, jitterMs)
      running = endCalls(state, running, nowMs)
      verdict = admit(state, attempt, limits, nowMs)
    }
    expect(verdict.refusal, `seed ${seed}, ${organizationId}`).toBeNull()
    const used = upTo(random, tokens)
    running.push({ attempt, admittedAtMs: nowMs, endsAtMs: nowMs + upTo(random, 1000), used })
  }
  return refusals
}

test(`${clients} clients, each alone: who waited is never refused again`, () => {
  const random = createRandom(seed)
  const met: Record<string, number> = {}
  for (let client = 0; client < clients; client++) {
    const refusals = runAlone(random, `org-${client}`)
    for (const [metric, count] of Object.entries(refusals)) met[metric] = (met[metric] ?? 0) + count
  }
  console.log(`seed ${seed}, refused and then let in:`, met)
  for (const metric of Object.keys(limitsByTier.free.key)) expect(met[metric]).toBeGreaterThan(10)
})

test(`${clients} clients in one organization: who is refused again was overtaken, and all get through`, () => {
  const random = createRandom(seed)
  const { organization } = limitsByTier.tier_1
  const windows = { ...organization, concurrent_requests: Infinity }
  const limits = { organization: windows, project: windows, key: windows }
  const state = createWindows()
  const admittedAtMs: number[] = []
  const inARow: number[] = []
  let waiting = Array.from({ length: clients }, (_, client) => ({
    ...{ client, atMs: startMs + upTo(random, 5000), refusals: 0, admittedBefore: 0 },
  }))
  while (waiting.length > 0) {
    const [next, ...others] = waiting.toSorted((left, right) => left.atMs - right.atMs)
    const { client, atMs, refusals, admittedBefore } = next!
    const place = { organizationId: 'one', projectId: 'p', keyId: `k${client}` }
    const attempt = { ...place, tokens: 500, leaseId: `${client}`, leaseMs: 0 }
    const { refusal } = admit(state, attempt, limits, atMs)
    waiting = others
    if (!refusal) {
      admittedAtMs.push(atMs)
      inARow.push(refusals)
      continue
    }
    const hasWaited = refusals > 0
    if (hasWaited) expect(admittedAtMs.length, `seed ${seed}`).toBeGreaterThan(admittedBefore)
    const againAtMs = atMs + retryAfterMs(refusal.waitMs) + upTo(random, jitterMs)
    waiting.push({
      ...{ client, atMs: againAtMs, refusals: refusals + 1, admittedBefore: admittedAtMs.length },
    })
  }
  const sorted = inARow.toSorted((left, right) => left - right)
  console.log(`seed ${seed}, refusals in a row until let in:`, {
    ...{ p50: sorted[clients / 2], p99: sorted[clients * 0.99], most: sorted.at(-1) },
    minutes: (admittedAtMs.at(-1)! - startMs) / 60_000,
  })
  for (const [index, atMs] of admittedAtMs.entries()) {
    const minuteLater = admittedAtMs[index + organization.requests_per_minute]
    if (minuteLater !== undefined) expect(minuteLater - atMs).toBeGreaterThan(60_000)
  }
  // Nobody starves: as many rounds of a minute as it takes, and at most two refusals in each of them.
  const rounds = Math.ceil(clients / organization.requests_per_minute)
  expect(sorted.at(-1)).toBeLessThan(2 * rounds)
})
