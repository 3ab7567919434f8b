import { expect, test } from 'vitest'

import { createRandom } from '#testing/fault-proxy.ts'

import {
  createOrganizationCounts,
  type OrganizationCounts,
} from './counters/organization-counts.ts'
import { admit, settle } from './counters/rolling-window.ts'
import { limitMetrics } from './limit-metrics.ts'
import type { Amounts, LimitedCall, Limits } from './limits.ts'
import { limitsByTier } from './tiers.ts'

// Clients that wait for as long as Retry-After says (whole seconds, rounded up) plus a random delay.
//
// A client that is alone in its organization is never refused twice in a row: the wait is exact for windows,
// and for slots it is longer than the calls here last. With several clients another one may be faster. Then a
// client is refused again only if another call was admitted meanwhile, and every client gets through.

const seed = Number(process.env['LIMIT_SEED'] ?? Date.now() % 2 ** 31)
const clients = 1000
const startMs = 1_700_000_000_000
const jitterMs = 500

const retryAfterMs = (waitMs: number) => Math.ceil(waitMs / 1000) * 1000

type Random = () => number
const upTo = (random: Random, most: number) => Math.floor(random() * (most + 1))

function randomLimits(random: Random): Limits {
  const [requests, tokens] = [1 + upTo(random, 20), 2000 + upTo(random, 20_000)]
  const limitOf = ({ unit, window }: (typeof limitMetrics)[number]) => {
    if (unit === 'slots') return 1 + upTo(random, 5)
    if (window === 'minute') return unit === 'requests' ? requests : tokens
    return unit === 'requests' ? 20 + upTo(random, 100) : tokens * 4
  }
  const times = (factor: number) =>
    Object.fromEntries(
      limitMetrics.map((row) => [row.metric, Math.ceil(limitOf(row) * factor)]),
    ) as Amounts
  return { organization: times(2), project: times(1.5), key: times(1) }
}

type Running = { call: LimitedCall; admittedAtMs: number; endsAtMs: number; used: number }

function endCalls(counts: OrganizationCounts, running: Running[], nowMs: number): Running[] {
  for (const { call, admittedAtMs, endsAtMs, used } of running) {
    if (endsAtMs > nowMs) continue
    settle(counts, { ...call, reserved: call.tokens, used, admittedAtMs }, endsAtMs)
  }
  return running.filter(({ endsAtMs }) => endsAtMs > nowMs)
}

/** Runs a client alone, with calls of random size, pace and length; returns how often each metric refused one. */
function runAlone(random: Random, organizationId: string): Record<string, number> {
  const limits = randomLimits(random)
  const paceMs = 1 + upTo(random, 20_000)
  const counts = createOrganizationCounts()
  const refusals: Record<string, number> = {}
  let [nowMs, running] = [startMs + upTo(random, 3_600_000), [] as Running[]]
  for (let number = 0; number < 60; number++) {
    nowMs += upTo(random, paceMs)
    const ids = { organizationId, projectId: 'p', keyId: `k${upTo(random, 2)}` }
    const tokens = upTo(random, 2000)
    const call = { ...ids, tokens, leaseId: `${number}`, leaseMs: 60_000 }
    running = endCalls(counts, running, nowMs)
    let verdict = admit(counts, call, limits, nowMs)
    if (verdict.refusal) {
      const { metric, waitMs } = verdict.refusal
      refusals[metric] = (refusals[metric] ?? 0) + 1
      nowMs += retryAfterMs(waitMs) + upTo(random, jitterMs)
      running = endCalls(counts, running, nowMs)
      verdict = admit(counts, call, limits, nowMs)
    }
    expect(verdict.refusal, `seed ${seed}, ${organizationId}`).toBeNull()
    const used = upTo(random, tokens)
    running.push({ call, admittedAtMs: nowMs, endsAtMs: nowMs + upTo(random, 1000), used })
  }
  return refusals
}

test(`${clients} clients, each alone: none is refused again after its wait`, () => {
  const random = createRandom(seed)
  const refused: Record<string, number> = {}
  for (let client = 0; client < clients; client++) {
    const refusals = runAlone(random, `org-${client}`)
    for (const [metric, count] of Object.entries(refusals))
      refused[metric] = (refused[metric] ?? 0) + count
  }
  console.log(`seed ${seed}, refused and then admitted:`, refused)
  for (const metric of Object.keys(limitsByTier.free.key))
    expect(refused[metric]).toBeGreaterThan(10)
}, 60_000)

test(`${clients} clients in one organization: only overtaken ones are refused again, and all get through`, () => {
  const random = createRandom(seed)
  const { organization } = limitsByTier.tier_1
  const windows = { ...organization, concurrent_requests: Infinity }
  const limits = { organization: windows, project: windows, key: windows }
  const counts = createOrganizationCounts()
  const admittedAtMs: number[] = []
  const inARow: number[] = []
  let waiting = Array.from({ length: clients }, (_, client) => ({
    client,
    atMs: startMs + upTo(random, 5000),
    refusals: 0,
    admittedBefore: 0,
  }))
  while (waiting.length > 0) {
    const [next, ...others] = waiting.toSorted((left, right) => left.atMs - right.atMs)
    const { client, atMs, refusals, admittedBefore } = next!
    const ids = { organizationId: 'one', projectId: 'p', keyId: `k${client}` }
    const call = { ...ids, tokens: 500, leaseId: `${client}`, leaseMs: 0 }
    const { refusal } = admit(counts, call, limits, atMs)
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
      client,
      atMs: againAtMs,
      refusals: refusals + 1,
      admittedBefore: admittedAtMs.length,
    })
  }
  const sorted = inARow.toSorted((left, right) => left - right)
  console.log(`seed ${seed}, refusals in a row until admitted:`, {
    p50: sorted[clients / 2],
    p99: sorted[clients * 0.99],
    most: sorted.at(-1),
    minutes: (admittedAtMs.at(-1)! - startMs) / 60_000,
  })
  for (const [index, atMs] of admittedAtMs.entries()) {
    const minuteLater = admittedAtMs[index + organization.requests_per_minute]
    if (minuteLater !== undefined) expect(minuteLater - atMs).toBeGreaterThan(60_000)
  }
  // No client starves: all get through in as many minutes as needed, with at most two refusals in each.
  const rounds = Math.ceil(clients / organization.requests_per_minute)
  expect(sorted.at(-1)).toBeLessThan(2 * rounds)
}, 60_000)
