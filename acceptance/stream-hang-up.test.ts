import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createClient } from '@gatehouse/contract/client'
import { readLimits } from '@gatehouse/contract/limits'
import { expect, test } from 'vitest'

import { begin, type Begun, formats, type Wish } from './support/stream-call.ts'
import { resetUpstream, stateOf } from './support/stream-upstream.ts'
import { useStack } from './support/use-stack.ts'

// A caller who hangs up pays for nothing more and keeps nothing occupied: the upstream is let go at once.

const stack = useStack()
const hangUpMaxMs = 100

const modelOf = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
} as const

async function slotsUsed(): Promise<number> {
  const { base_url, admin_key } = stack().description
  const client = createClient({ baseUrl: base_url, credential: admin_key })
  const { organization } = await client.call(readLimits, {})
  return organization.concurrent_requests.used
}

/** Begins a call, hangs up when `isTime`, and says how long the upstream's connection then stayed open. */
async function hangUpWhen(wish: Wish, isTime: (call: Begun) => Promise<unknown>): Promise<number> {
  const { base_url, project_key, upstream_url } = stack().description
  await resetUpstream(upstream_url)
  const call = begin({ baseUrl: base_url, credential: project_key }, wish)
  await isTime(call)
  const hungUpAt = performance.now()
  call.hangUp()
  while ((await stateOf(upstream_url)).hungUp.length === 0) {
    if (performance.now() - hungUpAt > 3000) return Infinity
    await sleep(5)
  }
  return performance.now() - hungUpAt
}

const untilAsked = async () => {
  const openAtUpstream = async () => (await stateOf(stack().description.upstream_url)).open
  await expect.poll(openAtUpstream, { interval: 5 }).toBe(1)
}
const untilChunks = (count: number) => async (call: Begun) => {
  const options = { interval: 5, timeout: 5000 }
  await expect.poll(() => call.chunks.length, options).toBeGreaterThanOrEqual(count)
}

const silent = { tokens: 20, stallAfter: { pieces: 5, ms: 20_000 } }
const talking = { tokens: 2000, paceMs: 20 }

for (const format of formats) {
  const wish = { format, model: modelOf[format] }
  const cases = [
    ['in the middle of a stream', { ...wish, script: talking }, untilChunks(3)],
    ['in the middle of a stream that has gone silent', { ...wish, script: silent }, untilChunks(1)],
    ['before the head', { ...wish, script: { headMs: 20_000 } }, untilAsked],
    ['before the first byte', { ...wish, script: { firstMs: 20_000 } }, untilAsked],
    ['during a plain call', { ...wish, script: talking, isStreamed: false }, untilAsked],
    ['during a silent plain call', { ...wish, script: silent, isStreamed: false }, untilAsked],
  ] as const
  test.for(cases)(
    `${format}: a caller who hangs up %s lets the upstream go within ${hangUpMaxMs} ms, and the slot`,
    async ([, each, isTime]) => {
      const isTimeAndABit = async (call: Begun) => {
        await isTime(call)
        await sleep(150)
      }
      expect(await hangUpWhen(each, isTimeAndABit)).toBeLessThan(hangUpMaxMs)
      await expect.poll(slotsUsed, { timeout: 1000 }).toBe(0)
    },
  )
}

test('a caller may hang up in the pause before a second attempt', async () => {
  const { base_url: baseUrl, project_key: credential, upstream_url } = stack().description
  await resetUpstream(upstream_url)
  const script = { error: { status: 503 } }
  for (const model of Object.values(modelOf)) {
    const call = begin({ baseUrl, credential }, { format: 'chat', model, script })
    await expect.poll(async () => (await stateOf(upstream_url)).requests, { interval: 2 }).toBe(1)
    call.hangUp()
    await expect.poll(slotsUsed, { timeout: 1000 }).toBe(0)
    await resetUpstream(upstream_url)
  }
})

test('nobody is blamed for calls that were hung up: no problem is logged', async () => {
  const names = (await readdir(stack().folder)).filter((name) => name.startsWith('api-'))
  const logs = await Promise.all(names.map((name) => readFile(join(stack().folder, name), 'utf8')))
  const lines = logs.join('').split('\n')
  const isProblem = /"event":"problem".*("request_id"|a failure that nobody expected)/
  expect(lines.filter((line) => isProblem.test(line))).toEqual([])
})
