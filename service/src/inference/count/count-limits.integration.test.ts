import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type OrganizationLimits, readLimits } from '@gatehouse/contract/limits'
import { expect, onTestFinished, test } from 'vitest'

import { prepareQuotaCalls, userQuota } from '#testing/quotas/quota-calls.ts'

// What a count of tokens takes from the limits. A free count of everything would let one caller have others read for it.

const perMinute = 1000

async function prepareCounts(config: object = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-counts-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const LIMITS_FILE = join(folder, 'limits.json')
  const numbers = { tokens_per_minute: perMinute }
  await writeFile(LIMITS_FILE, JSON.stringify({ free: { key: numbers } }))
  const calls = await prepareQuotaCalls({ config, environment: { LIMITS_FILE } })
  const count = async (words: number, user?: string) => {
    const messages = [{ role: 'user', content: 'word '.repeat(words) }]
    const body = { model: 'chat-scripted', messages }
    return calls.post('/v1/messages/count_tokens', body, { ...(user !== undefined && { user }) })
  }
  const used = async () => {
    const answer = await calls.api.send(readLimits, {})
    const { organization, projects, keys } = answer.body as unknown as OrganizationLimits
    return { organization, project: projects[0], key: keys[0] }
  }
  return { ...calls, count, used }
}

test('a count takes its tokens from the minute of all scopes, and not from the day', async () => {
  const { count, used } = await prepareCounts()
  const { status, headers } = await count(300)
  expect(status).toBe(200)
  const remaining = Number(headers['x-ratelimit-remaining-tokens'])
  expect(remaining).toBeGreaterThan(0)
  expect(remaining).toBeLessThanOrEqual(perMinute - 300)
  const scopes = await used()
  for (const scope of Object.values(scopes)) {
    expect(scope?.tokens_per_minute.used).toBeGreaterThanOrEqual(300)
    expect(scope?.tokens_per_day.used).toBe(0)
    expect(scope?.requests_per_minute.used).toBe(1)
  }
})

test('429: more tokens a minute are counted than may be sent', async () => {
  const { count, readEvents } = await prepareCounts()
  expect([(await count(400)).status, (await count(400)).status]).toEqual([200, 200])
  const refused = await count(400)
  expect(refused).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  expect(refused.headers['x-ratelimit-limit-tokens']).toBe(String(perMinute))
  // A call that the limiter refuses leaves no event.
  expect(await readEvents()).toHaveLength(2)
})

test('400: a text that no minute has room for is not counted', async () => {
  const { count, used } = await prepareCounts()
  expect((await count(perMinute + 100)).status).toBe(400)
  const { key } = await used()
  expect(key?.tokens_per_minute.used).toBe(0)
  expect(key?.requests_per_minute.used).toBe(1)
})

test('a count of a text that may not be sent gives its tokens back', async () => {
  const { post, used } = await prepareCounts({ rules: { denylist: ['zzqx'] } })
  const messages = [{ role: 'user', content: `zzqx ${'word '.repeat(300)}` }]
  const refused = await post('/v1/messages/count_tokens', { model: 'chat-scripted', messages })
  expect(refused.status).toBe(400)
  const { key } = await used()
  expect(key?.tokens_per_minute.used).toBe(0)
})

test('a quota counts the request, and none of its tokens', async () => {
  const { count, readUsage } = await prepareCounts(userQuota('daily', 10, 50))
  expect((await count(300, 'ann')).status).toBe(200)
  expect(await readUsage()).toMatchObject([{ subject: 'ann', requests: 1, tokens: 0, credits: 0 }])
})
