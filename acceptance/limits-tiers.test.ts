import { readLimits } from '@gatehouse/contract/limits'
import { runOperator, type Stack } from '@gatehouse/tools/start-stack'
import { beforeAll, expect, test, vi } from 'vitest'

import {
  addTenant,
  callLimited,
  clearCounters,
  type LimitedAnswer,
  type ProjectKey,
  sendUntilRefused,
  type Tenant,
  addUsageToday,
  whileExact,
} from './support/limited-call.ts'
import { useStack } from './support/use-stack.ts'

// The running service enforces every value of docs/specification/limits.md (tiers, values).

const scopes = ['key', 'project', 'organization'] as const
type Scope = (typeof scopes)[number]

type Windows<Day = number> = readonly [perMinute: number, perDay: Day]

const limits = (requests: Windows, tokens: Windows<number | null>, concurrent: number) => ({
  requests_per_minute: requests[0],
  requests_per_day: requests[1],
  tokens_per_minute: tokens[0],
  tokens_per_day: tokens[1],
  concurrent_requests: concurrent,
})
type Metric = keyof ReturnType<typeof limits>

/** Copied from docs/specification/limits.md#values; nothing is computed or taken from the service. */
const contract = {
  free: {
    key: limits([60, 10_000], [1_000_000, null], 4),
    project: limits([90, 15_000], [1_500_000, null], 6),
    organization: limits([120, 20_000], [2_000_000, 1_000_000_000], 8),
  },
  tier_1: {
    key: limits([120, 15_000], [2_000_000, null], 8),
    project: limits([180, 22_500], [3_000_000, null], 10),
    organization: limits([240, 30_000], [4_000_000, 2_000_000_000], 12),
  },
  tier_2: {
    key: limits([300, 25_000], [4_000_000, null], 12),
    project: limits([450, 37_500], [6_000_000, null], 14),
    organization: limits([600, 50_000], [8_000_000, 5_000_000_000], 16),
  },
  tier_3: {
    key: limits([500, 50_000], [6_000_000, null], 16),
    project: limits([750, 75_000], [9_000_000, null], 16),
    organization: limits([1000, 100_000], [12_000_000, 10_000_000_000], 16),
  },
  tier_4: {
    key: limits([700, 75_000], [8_000_000, null], 32),
    project: limits([1050, 112_500], [12_000_000, null], 32),
    organization: limits([1400, 150_000], [16_000_000, 20_000_000_000], 32),
  },
  tier_5: {
    key: limits([900, 100_000], [10_000_000, null], 32),
    project: limits([1350, 150_000], [15_000_000, null], 32),
    organization: limits([1800, 200_000], [20_000_000, 50_000_000_000], 32),
  },
} as const
type Tier = keyof typeof contract
const tiers = Object.keys(contract) as Tier[]

/** The operator command that brings an organization to a tier. */
const reachedBy: Record<Tier, readonly string[] | null> = {
  free: null,
  tier_1: ['plan', '--plan', 'developer'],
  tier_2: ['plan', '--plan', 'growth'],
  tier_3: ['plan', '--plan', 'scale'],
  tier_4: ['payment', '--id', 'pay_1', '--usd', '1000'],
  tier_5: ['payment', '--id', 'pay_1', '--usd', '5000'],
}

const stack = useStack({
  models: null,
  program: 'limited-main',
  hasLimits: true,
  // A slow reply of Redis on a busy machine must not make a process count locally.
  environment: { REDIS_DEADLINE_MS: '1000' },
})
/** Long enough for a busy machine; how fast it happens is not checked. */
const eventually = { timeout: 30_000, interval: 100 }

/** Two keys of one project and one of another: with them each scope can be filled before the next larger one. */
type Member = { tier: Tier; tenant: Tenant; keys: Record<Scope, ProjectKey> }
let members: Member[] = []
beforeAll(async () => {
  members = await Promise.all(tiers.map((tier) => prepare(stack(), tier)))
})

async function prepare(running: Stack, tier: Tier): Promise<Member> {
  const tenant = await addTenant(running, tier)
  const [command, ...options] = reachedBy[tier] ?? []
  if (command) await runOperator(running.service, [command, tenant.id, ...options])
  const keys = {
    key: await tenant.addKey(),
    project: await tenant.addKey(),
    organization: await tenant.addKey(await tenant.addProject()),
  }
  await callLimited(running.description.base_url, keys.key.value)
  await vi.waitFor(async () => expect(await tierOf(tenant)).toBe(tier), eventually)
  return { tier, tenant, keys }
}

const tierOf = async ({ client }: Tenant) => (await client.call(readLimits, {})).tier

type Measure = (member: Member) => Promise<Partial<Record<Scope, number>>>

async function observeOne(member: Member, measure: Measure) {
  const figures = await whileExact(stack(), async () => {
    await clearCounters(stack(), member.tenant.id)
    return measure(member)
  })
  return [member.tier, figures] as const
}

/** Measures all tiers at once, each from fresh counters, and returns the figures as a table. */
async function observe(measure: Measure): Promise<object> {
  const rows = members.map((member) => observeOne(member, measure))
  return Object.fromEntries(await Promise.all(rows))
}

/** The same, one tier after the other, so that each has the whole machine for its minute. */
async function observeInTurn(measure: Measure): Promise<object> {
  const rows: Awaited<ReturnType<typeof observeOne>>[] = []
  for (const member of members) rows.push(await observeOne(member, measure))
  return Object.fromEntries(rows)
}

/** The column of a metric in the tables of docs/specification/limits.md#values. */
const columnOf = (metric: Metric) =>
  Object.fromEntries(
    tiers.map((tier) => [
      tier,
      Object.fromEntries(scopes.map((scope) => [scope, contract[tier][scope][metric]])),
    ]),
  )

const scopeNames: Record<Scope, string> = {
  key: 'API key',
  project: 'project',
  organization: 'organization',
}

function expectNamed(
  { status, message, code, headers }: LimitedAnswer,
  metric: Metric,
  [tier, scope]: readonly [Tier, Scope],
) {
  const limit = contract[tier][scope][metric]
  const name = metric.replaceAll('_', ' ')
  expect([tier, status, code]).toEqual([tier, 429, 'rate_limit_exceeded'])
  expect(message).toBe(
    `Rate limit reached for ${name} on ${scopeNames[scope]}: limit ${limit}. Retry after ${headers['retry-after']}s.`,
  )
}

const send = (key: ProjectKey, options = {}, hangUp?: AbortSignal) =>
  callLimited(stack().description.base_url, key.value, options, hangUp)

const day = 86_400
const hour = 3600

test('the limits of every tier and scope are reported as specified', async () => {
  await observe(async ({ tier, tenant }) => {
    const unused = (scope: Scope) =>
      Object.fromEntries(
        Object.entries(contract[tier][scope]).map(([metric, limit]) => [
          metric,
          { limit, used: 0 },
        ]),
      )
    expect(await tenant.client.call(readLimits, {})).toMatchObject({
      tier,
      is_exact: true,
      projects: [],
      keys: [],
      organization: unused('organization'),
      each_project: unused('project'),
      each_key: unused('key'),
    })
    return {}
  })
})

async function slotsUsed({ tenant, keys }: Member, scope: Scope): Promise<number | undefined> {
  const report = await tenant.client.call(readLimits, {})
  const [key] = report.keys.filter(({ key_id }) => key_id === keys.key.id)
  const [project] = report.projects.filter(({ project_id }) => project_id === tenant.projectId)
  return { key, project, organization: report.organization }[scope]?.concurrent_requests.used
}

/**
 * Starts calls that last until `hangUp` aborts them, more than there are free slots in this scope. When all slots
 * are used and the others have been refused, every call is accounted for.
 */
async function fill(member: Member, scope: Scope, freeSlots: number, hangUp: AbortSignal) {
  const { tier, keys } = member
  const tooMany = 3
  const refused: LimitedAnswer[] = []
  const calls = Array.from({ length: freeSlots + tooMany }, async () => {
    const answer = await send(keys[scope], { holdMs: 600_000 }, hangUp)
    if (answer.status === 429) refused.push(answer)
    else throw new Error(`A call that should be held ended with ${answer.status}.`)
  })
  const ended = Promise.allSettled(calls)
  const limit = contract[tier][scope].concurrent_requests
  await expect
    .poll(async () => [refused.length, await slotsUsed(member, scope)], eventually)
    .toEqual([tooMany, limit])
  // One more call, sent after all others, is refused too, so none of the others is still on its way.
  expect((await send(keys[scope])).status).toBe(429)
  return { refusal: refused[0]!, admitted: calls.length - refused.length, ended }
}

test('concurrent requests: exactly the limit is admitted at once, in every tier and scope', async () => {
  const observed = await observe(async (member) => {
    const { tier } = member
    const hangUp = new AbortController()
    const figures: Partial<Record<Scope, number>> = {}
    const ends: Promise<unknown>[] = []
    let total = 0
    for (const scope of scopes) {
      const freeSlots = contract[tier][scope].concurrent_requests - total
      const { refusal, admitted, ended } = await fill(member, scope, freeSlots, hangUp.signal)
      expectNamed(refusal, 'concurrent_requests', [tier, scope])
      expect(refusal.headers['retry-after']).toBe('1')
      total += admitted
      figures[scope] = total
      ends.push(ended)
    }
    hangUp.abort()
    await Promise.all(ends)
    return figures
  })
  expect(observed).toEqual(columnOf('concurrent_requests'))
})

test('tokens per minute: exactly the limit fits and not one more, in every tier and scope', async () => {
  const observed = await observe(async ({ tier, keys, tenant }) => {
    const figures: Partial<Record<Scope, number>> = {}
    let total = 0
    for (const scope of scopes) {
      const tokens = contract[tier][scope].tokens_per_minute - total
      expect((await send(keys[scope], { tokens })).status).toBe(200)
      expectNamed(await send(keys[scope], { tokens: 1 }), 'tokens_per_minute', [tier, scope])
      total += tokens
      figures[scope] = total
    }
    const { organization } = await tenant.client.call(readLimits, {})
    expect([organization.tokens_per_minute.used, organization.tokens_per_day.used]).toEqual([
      total,
      total,
    ])
    return figures
  })
  expect(observed).toEqual(columnOf('tokens_per_minute'))
})

test('requests per minute: the 429 comes after exactly the limit, in every tier and scope', async () => {
  const observed = await observeInTurn(async ({ tier, keys, tenant }) => {
    const startedAt = performance.now()
    const figures: Partial<Record<Scope, number>> = {}
    let total = 0
    for (const scope of scopes) {
      const { admitted, refusal } = await sendUntilRefused(() => send(keys[scope]))
      expectNamed(refusal!, 'requests_per_minute', [tier, scope])
      expect(Number(refusal?.headers['retry-after'])).toBeLessThanOrEqual(61)
      total += admitted
      figures[scope] = total
    }
    // After a minute the first calls would have left the window, and the figures would prove nothing.
    expect(performance.now() - startedAt, 'too slow for a minute').toBeLessThan(59_000)
    const report = await tenant.client.call(readLimits, {})
    const usedBy = (id: string) => [
      ...report.keys.filter(({ key_id }) => key_id === id),
      ...report.projects.filter(({ project_id }) => project_id === id),
    ]
    // Refused calls are not counted.
    expect(report.organization.requests_per_minute.used).toBe(total)
    expect(report.organization.requests_per_day.used).toBe(total)
    expect(usedBy(keys.key.id)).toMatchObject([{ requests_per_minute: { used: figures.key } }])
    expect(usedBy(tenant.projectId)).toMatchObject([
      { requests_per_minute: { used: figures.project } },
    ])
    return figures
  })
  expect(observed).toEqual(columnOf('requests_per_minute'))
})

test('requests per day: the last one is admitted and the next waits a day, in every tier and scope', async () => {
  const observed = await observe(async ({ tier, keys, tenant }) => {
    const fields = { key: `k${keys.key.id}`, project: `p${keys.key.projectId}`, organization: 'o' }
    const figures: Partial<Record<Scope, number>> = {}
    for (const scope of scopes) {
      const already = contract[tier][scope].requests_per_day - 1
      await clearCounters(stack(), tenant.id)
      await addUsageToday(stack(), tenant.id, { field: fields[scope], requests: already })
      const last = await send(keys.key)
      expect(last.headers).toMatchObject({
        'x-ratelimit-limit-requests': String(contract[tier][scope].requests_per_day),
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': expect.stringMatching(/^2[34]h\d+m[\d.]+s$/) as string,
      })
      const next = await send(keys.key)
      expectNamed(next, 'requests_per_day', [tier, scope])
      expect(Number(next.headers['retry-after'])).toBeGreaterThanOrEqual(day - hour)
      figures[scope] = already + (last.status === 200 ? 1 : 0)
    }
    return figures
  })
  expect(observed).toEqual(columnOf('requests_per_day'))
})

test('tokens per day: the last one of the organization fits and the next waits a day, in every tier', async () => {
  const observed = await observe(async ({ tier, keys, tenant }) => {
    const already = (contract[tier].organization.tokens_per_day ?? 0) - 1
    await addUsageToday(stack(), tenant.id, { field: 'o', tokens: already })
    const last = await send(keys.key, { tokens: 1 })
    expect(last.headers).toMatchObject({
      'x-ratelimit-limit-tokens': String(already + 1),
      'x-ratelimit-remaining-tokens': '0',
    })
    for (const scope of scopes) {
      const next = await send(keys[scope], { tokens: 1 })
      expectNamed(next, 'tokens_per_day', [tier, 'organization'])
      expect(Number(next.headers['retry-after'])).toBeGreaterThanOrEqual(day - hour)
    }
    expect((await send(keys.key)).status, 'a call without tokens').toBe(200)
    return { organization: already + (last.status === 200 ? 1 : 0) }
  })
  const column = tiers.map((tier) => [
    tier,
    { organization: contract[tier].organization.tokens_per_day },
  ])
  expect(observed).toEqual(Object.fromEntries(column))
})

test('tokens per day: keys and projects have no limit of their own', async () => {
  await observe(async ({ keys, tenant }) => {
    const tokens = 60_000_000_000
    await addUsageToday(stack(), tenant.id, { field: `k${keys.key.id}`, tokens })
    await addUsageToday(stack(), tenant.id, { field: `p${keys.key.projectId}`, tokens })
    expect((await send(keys.key, { tokens: 1 })).status).toBe(200)
    return {}
  })
})

test('lifetime payments: each threshold is reached with its last cent', async () => {
  const tenant = await addTenant(stack(), 'Climber')
  const steps = [
    ['19.99', 19.99, 'free'],
    ['0.01', 20, 'tier_1'],
    ['29.99', 49.99, 'tier_1'],
    ['0.01', 50, 'tier_2'],
    ['149.99', 199.99, 'tier_2'],
    ['0.01', 200, 'tier_3'],
    ['799.99', 999.99, 'tier_3'],
    ['0.01', 1000, 'tier_4'],
    ['3999.99', 4999.99, 'tier_4'],
    ['0.01', 5000, 'tier_5'],
  ] as const
  for (const [index, [usd, paid, tier]] of steps.entries()) {
    const payment = ['payment', tenant.id, '--id', `pay_${index}`, '--usd', usd]
    await runOperator(stack().service, payment)
    const reported = async () => {
      const { lifetime_paid_usd, ...rest } = await tenant.client.call(readLimits, {})
      return [lifetime_paid_usd, rest.tier]
    }
    await expect.poll(reported, eventually).toEqual([paid, tier])
  }
})
