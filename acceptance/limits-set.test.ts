import { mkdtempSync, writeFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { updateProjectApiKey } from '@gatehouse/contract/api-key'
import { readLimits } from '@gatehouse/contract/limits'
import { updateProject } from '@gatehouse/contract/project'
import { runGatehouse } from '@gatehouse/tools/run-script'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Poller, startDatabasePoller } from './support/baseline/poller.ts'
import {
  addTenant,
  callLimited,
  clearCounters,
  type LimitedAnswer,
  type LimitedCallOptions,
  type ProjectKey,
  sendUntilRefused,
  type Tenant,
  whileExact,
} from './support/limited-call.ts'
import { useStack } from './support/use-stack.ts'

// Limits that the operator's file, the operator and an administrator set are in force on both processes within 5
// seconds, with calls until 429 that the processes take in turns. Every test has its own organization on the free tier.

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-limits-'))
const file = join(folder, 'limits.json')
const fileWith = (requests: number) =>
  JSON.stringify({ free: { key: { requests_per_minute: requests } } })
const fromFile = 50
writeFileSync(file, fileWith(fromFile))

const stack = useStack({
  models: null,
  program: 'limited-main',
  hasLimits: true,
  processes: 2,
  // A slow reply of Redis on a busy machine must not make a process count locally.
  environment: { REDIS_DEADLINE_MS: '1000', LIMITS_FILE: file },
})
let poller: Poller
beforeAll(async () => {
  poller = await startDatabasePoller(stack().database.url)
})
afterAll(async () => {
  await poller.stop()
  await rm(folder, { recursive: true })
})

const secondsMax = 5
/** Only detects a hang; the deadline is checked against a bare poller of the same database. */
const giveUpMs = 90_000

let turn = 0
const send = (key: ProjectKey, options: LimitedCallOptions = {}, hangUp?: AbortSignal) => {
  const { base_urls: urls } = stack().description
  return callLimited(urls[turn++ % urls.length]!, key.value, options, hangUp)
}

const operator = async (...args: string[]) =>
  JSON.parse(
    await runGatehouse(['operator', 'limits', ...args, '--json'], {
      environment: stack().service,
    }),
  ) as unknown

const limitIn = ({ headers }: LimitedAnswer) => Number(headers['x-ratelimit-limit-requests'])

/** Makes both processes cache the key, changes something, and waits until both report the new limit. */
async function changeAndWait(key: ProjectKey, limit: number, change: () => Promise<unknown>) {
  const { base_urls: urls } = stack().description
  for (const url of urls) expect(limitIn(await callLimited(url, key.value))).not.toBe(limit)
  await change()
  const startedAt = performance.now()
  await Promise.all(
    urls.map(async (url) => {
      while (limitIn(await callLimited(url, key.value)) !== limit) {
        if (performance.now() - startedAt > giveUpMs) throw new Error(`${limit} is not in force`)
        await sleep(20)
      }
    }),
  )
  const ms = performance.now() - startedAt
  const seconds = ms / Math.max(1000, poller.longestPauseMs(startedAt))
  console.log(`in force on both processes after ${Math.round(ms)} ms, ${seconds.toFixed(1)} polls`)
  expect(seconds).toBeLessThan(secondsMax)
}

/** Calls through both processes until one is refused: exactly the limit is admitted, and the refusal names it. */
async function expectExactly(tenant: Tenant, key: ProjectKey, limit: number, scope: string) {
  await whileExact(stack(), async () => {
    await clearCounters(stack(), tenant.id)
    await sleep(1100) // a process repeats its last refusal for a second
    const { admitted, refusal } = await sendUntilRefused(() => send(key))
    expect(admitted).toBe(limit)
    expect(refusal?.message).toContain(
      `Rate limit reached for requests per minute on ${scope}: limit ${limit}.`,
    )
  })
}

test('a changed file', async () => {
  const tenant = await addTenant(stack(), 'File')
  const key = await tenant.addKey()
  await expectExactly(tenant, key, fromFile, 'API key')
  await clearCounters(stack(), tenant.id)
  await changeAndWait(key, 23, async () => {
    await writeFile(`${file}.new`, fileWith(23))
    await rename(`${file}.new`, file)
  })
  await expectExactly(tenant, key, 23, 'API key')
  const { each_key } = await tenant.client.call(readLimits, {})
  expect(each_key).toMatchObject({
    requests_per_minute: { limit: 23, source: 'file' },
    requests_per_day: { limit: 10_000, source: 'tier' },
  })
})

test('an operator sets the limits of an organization, and removes them', async () => {
  const tenant = await addTenant(stack(), 'Organization')
  const key = await tenant.addKey()
  const usual = limitIn(await send(key))
  await changeAndWait(key, 17, () => operator('set', tenant.id, '--requests-per-minute', '17'))
  await expectExactly(tenant, key, 17, 'organization')
  await clearCounters(stack(), tenant.id)
  await sleep(1100)
  await changeAndWait(key, usual, () => operator('clear', tenant.id))
})

test('an operator sets the limits of a key; another key keeps its own', async () => {
  const tenant = await addTenant(stack(), 'Operator and key')
  const [key, other] = [await tenant.addKey(), await tenant.addKey()]
  const set = () => operator('set', tenant.id, '--key', key.id, '--requests-per-minute', '12')
  const usual = limitIn(await send(other))
  await changeAndWait(key, 12, set)
  await expectExactly(tenant, key, 12, 'API key')
  expect(limitIn(await send(other))).toBe(usual)
})

test('an administrator sets the limits of a project', async () => {
  const tenant = await addTenant(stack(), 'Administrator and project')
  const key = await tenant.addKey()
  const params = { project_id: tenant.projectId }
  const body = { limits: { requests_per_minute: 14 } }
  await changeAndWait(key, 14, () => tenant.client.call(updateProject, { params, body }))
  await expectExactly(tenant, key, 14, 'project')
})

test('an administrator sets the limits of a key, which keeps what it has counted', async () => {
  const tenant = await addTenant(stack(), 'Administrator and key')
  const key = await tenant.addKey()
  const params = { project_id: tenant.projectId, key_id: key.id }
  const body = { limits: { requests_per_minute: 15, requests_per_day: 9000 } }
  await whileExact(stack(), async () => {
    const before = await tenant.client.call(readLimits, {})
    await tenant.client.call(updateProjectApiKey, { params, body: { limits: null } })
    await changeAndWait(key, 15, () => tenant.client.call(updateProjectApiKey, { params, body }))
    const { keys } = await tenant.client.call(readLimits, {})
    const used = before.keys[0]?.requests_per_day.used ?? 0
    expect(keys).toMatchObject([
      {
        requests_per_minute: { limit: 15, source: 'override' },
        requests_per_day: { limit: 9000, source: 'override' },
      },
    ])
    // One call through each process before the change, and at least as many after it.
    expect(keys[0]?.requests_per_day.used).toBeGreaterThanOrEqual(used + 4)
  })
  await expectExactly(tenant, key, 15, 'API key')
})

test('300 concurrent requests are admitted where the operator allows 300, and not one more', async () => {
  const tenant = await addTenant(stack(), 'Many at once')
  const key = await tenant.addKey()
  const numbers = ['--requests-per-minute', '5000', '--concurrent-requests', '300']
  await operator('set', tenant.id, '--project', tenant.projectId, ...numbers)
  await operator('set', tenant.id, '--key', key.id, ...numbers)
  await changeAndWait(key, 5000, () => operator('set', tenant.id, ...numbers))
  await whileExact(stack(), async () => {
    await clearCounters(stack(), tenant.id)
    const hangUp = new AbortController()
    const refused: LimitedAnswer[] = []
    const calls = Array.from({ length: 310 }, async () => {
      const answer = await send(key, { holdMs: 600_000 }, hangUp.signal)
      if (answer.status === 429) refused.push(answer)
      else throw new Error(`A call that should be held ended with ${answer.status}.`)
    })
    const ended = Promise.allSettled(calls)
    const slots = async () => (await tenant.client.call(readLimits, {})).organization
    await expect
      .poll(async () => [refused.length, (await slots()).concurrent_requests.used], {
        timeout: 25_000,
      })
      .toEqual([10, 300])
    expect(refused[0]?.message).toContain('concurrent requests on API key: limit 300.')
    hangUp.abort()
    await ended
    await expect
      .poll(async () => (await slots()).concurrent_requests.used, { timeout: 25_000 })
      .toBe(0)
  })
})
