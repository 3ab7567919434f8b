import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { billingModes } from '#credits/settlement.ts'
import {
  creditsOfCall,
  prepareQuotaCalls,
  tokensOfCall,
  userQuota,
} from '#testing/quotas/quota-calls.ts'
import { connectPatiently, startRedis, until } from '#testing/redis-cluster.ts'

// Quotas and budgets of calls to models, through the whole API, by a clock that the test moves.

const ann = { user: 'ann' }
const budgetOf = (credits: number, hard_stop: boolean) => ({
  org_controls: { monthly_budget: { credits, alert_percents: [50, 80, 100], hard_stop } },
})

test('a quota of requests holds to the last millisecond of its window, and not a millisecond longer', async () => {
  const config = userQuota('monthly', 2)
  const { clock, call, readUsage, readEvents } = await prepareQuotaCalls({ config })
  expect([(await call(ann)).status, (await call(ann)).status]).toEqual([200, 200])
  const refused = await call(ann)
  expect(refused).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
  expect(refused.policy).toMatchObject({
    policy_id: 'policy-gateway',
    version: 1,
    reason_code: 'USER_QUOTA_EXCEEDED',
  })
  expect(refused.headers['retry-after']).toBe('1')
  clock.nowMs += 1
  expect((await call(ann)).status).toBe(200)
  const row = { scope: 'user', subject: 'ann' }
  expect(await readUsage()).toEqual([
    { ...row, day: '2026-11-30', requests: 2, tokens: 60, credits: 2 * creditsOfCall },
    { ...row, day: '2026-12-01', requests: 1, tokens: 30, credits: creditsOfCall },
  ])
  const headers = (await readEvents()).filter(({ outcome }) => outcome === 'refused')
  expect(headers).toMatchObject([
    { status: 429, decision: 'refuse', reason_code: 'USER_QUOTA_EXCEEDED' },
  ])
  expect(headers[0]).not.toHaveProperty('quotas')
})

test('clients wait an hour at most, however long the window lasts', async () => {
  const { clock, call } = await prepareQuotaCalls({ config: userQuota('weekly', 1) })
  clock.nowMs += 1000
  await call(ann)
  expect((await call(ann)).headers['retry-after']).toBe('3600')
})

test('tokens are reserved at their highest and corrected at the end', async () => {
  const { call, readUsage } = await prepareQuotaCalls({ config: userQuota('daily', 0, 200) })
  // A call reserves its estimated input and 100 tokens of output, which leaves no room for two at a time.
  const statuses = await Promise.all([call(ann), call(ann), call(ann)])
  expect(statuses.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(statuses.filter(({ status }) => status === 429)).toHaveLength(2)
  // 30 + 30 + 30 were used; what is left is less than a call reserves.
  const later: number[] = []
  for (let each = 0; each < 5; each++) later.push((await call(ann)).status)
  expect(later.slice(0, 1)).toEqual([200])
  expect(later.at(-1)).toBe(429)
  const admitted = 1 + later.filter((status) => status === 200).length
  expect(await readUsage()).toMatchObject([{ requests: admitted, tokens: admitted * tokensOfCall }])
})

test('what the database has is loaded before the first decision; without it the answer is 503', async () => {
  const { api, call, organizationId } = await prepareQuotaCalls({ config: userQuota('monthly', 5) })
  await sql`insert into quota_usage values
    (${organizationId}, 'user', 'ann', '2026-11-01', 3, 0, 0),
    (${organizationId}, 'user', 'ann', '2026-11-29', 1, 0, 0),
    (${organizationId}, 'user', 'ann', '2026-10-31', 9, 0, 0),
    (${organizationId}, 'user', 'bob', '2026-11-29', 9, 0, 0)`.execute(api.db)
  await sql`alter table quota_usage rename to moved_away`.execute(api.db)
  expect(await call(ann)).toMatchObject({ status: 503, code: 'dependency_unavailable' })
  await sql`alter table moved_away rename to quota_usage`.execute(api.db)
  expect([(await call(ann)).status, (await call(ann)).status]).toEqual([200, 429])
})

test.for(billingModes)('BILLING=%s: a budget alerts at its shares and stops', async (billing) => {
  const { api, call, readUsage } = await prepareQuotaCalls({
    config: budgetOf(3000, true),
    environment: { BILLING: billing },
  })
  const statuses: number[] = []
  for (let each = 0; each < 6; each++) statuses.push((await call()).status)
  // A call costs 330 credits and reserves 1,500 for its output, and some for its input.
  expect(statuses).toEqual([200, 200, 200, 200, 200, 402])
  const refused = await call()
  expect(refused).toMatchObject({ status: 402, code: 'budget_exceeded', policy: undefined })
  expect(await readUsage()).toMatchObject([
    { scope: 'organization', subject: '', requests: 5, credits: 5 * creditsOfCall },
  ])
  expect(await readAlerts(api.db)).toEqual([{ percent: 50 }])
})

test('without a hard stop a budget only alerts', async () => {
  const config = budgetOf(3 * creditsOfCall, false)
  const { api, call } = await prepareQuotaCalls({ config })
  const alerts: unknown[] = []
  for (let each = 0; each < 4; each++) {
    expect((await call()).status).toBe(200)
    alerts.push((await readAlerts(api.db)).length)
  }
  // A third, two thirds, and all of it.
  expect(alerts).toEqual([0, 1, 3, 3])
})

async function readAlerts(db: Parameters<ReturnType<typeof sql>['execute']>[0]) {
  const { rows } = await sql<{ percent: number }>`
    select (header->>'percent')::int as percent from event
    where kind = 'revision' and header->>'action' = 'budget_alert' order by 1`.execute(db)
  return rows
}

test('a call that a later step refuses counts as a request without tokens', async () => {
  const { call, readUsage } = await prepareQuotaCalls({ config: userQuota('daily', 2) })
  expect((await call({ ...ann, model: 'no-such-model' })).status).toBe(404)
  expect(await readUsage()).toMatchObject([{ requests: 1, tokens: 0, credits: 0 }])
  expect([(await call(ann)).status, (await call(ann)).status]).toEqual([200, 429])
})

test('quotas take no further command of Redis, and are loaded again when Redis has lost them', async () => {
  await using server = await startRedis()
  const redis = connectPatiently(server.url)
  await until(async () => Boolean(await redis.send('', ['PING'])))
  const countFunctions = async () => {
    const info = String(await redis.send('', ['INFO', 'commandstats']))
    return Number(/cmdstat_fcall:calls=(\d+)/.exec(info)?.[1] ?? 0)
  }
  const controls = {
    ...userQuota('monthly', 12).org_controls,
    ...budgetOf(100_000, true).org_controls,
  }
  const { call } = await prepareQuotaCalls({
    config: { org_controls: controls },
    environment: { REDIS_URL: server.url },
    atMs: Date.now,
  })
  expect((await call(ann)).status).toBe(200)
  const before = await countFunctions()
  for (let each = 0; each < 9; each++) expect((await call(ann)).status).toBe(200)
  expect((await countFunctions()) - before).toBe(18)
  await redis.send('', ['FLUSHALL'])
  expect([(await call(ann)).status, (await call(ann)).status]).toEqual([200, 200])
  expect((await call(ann)).status).toBe(429)
  redis.close()
})
