import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createClient } from '@gatehouse/contract/client'
import { readLimits } from '@gatehouse/contract/limits'
import { expect, test } from 'vitest'

import { bestRatio, timingOf } from './support/baseline/ratio.ts'
import {
  begin,
  foldedCall,
  formats,
  type RequestOptions,
  type RunningCall,
  type Target,
} from './support/streams/call.ts'
import { resetUpstream, stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// When a caller hangs up, the call to the upstream is aborted and the slot freed at once. The delay is compared
// with that of hanging up on the upstream itself. Only an upstream that was asked for a plain answer goes on.

const stack = useStack()
/** How many times longer the upstream may take to notice a hang-up through the gateway. */
const bounds = { p50: 10, p99: 10 }
/** Far below the minute after which the lease of a slot expires. */
const beforeTheLeaseEnds = { timeout: 20_000, interval: 20 }

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

type Wait = (call: RunningCall) => Promise<unknown>

/** Starts a call, hangs up when `wait` resolves, and returns how long the upstream's connection then stayed open. */
async function hangUpAfter(target: Target, request: RequestOptions, wait: Wait): Promise<number> {
  const { upstream_url } = stack().description
  await resetUpstream(upstream_url)
  const call = begin(target, request)
  await wait(call)
  const hungUpAt = performance.now()
  call.hangUp()
  while ((await stateOf(upstream_url)).hungUp.length === 0) {
    if (performance.now() - hungUpAt > 15_000) return Infinity
    await sleep(5)
  }
  return performance.now() - hungUpAt
}

async function untilCalled(times: number) {
  const openAtUpstream = async () => (await stateOf(stack().description.upstream_url)).open
  await expect.poll(openAtUpstream, { interval: 5, timeout: 30_000 }).toBe(times)
}
const untilCalledOnce = () => untilCalled(1)
const untilChunks = (count: number) => async (call: RunningCall) => {
  const options = { interval: 5, timeout: 30_000 }
  await expect.poll(() => call.chunks.length, options).toBeGreaterThanOrEqual(count)
}

const silent = { tokens: 20, stallAfter: { pieces: 5, ms: 20_000 } }
const talking = { tokens: 2000, paceMs: 20 }

for (const format of formats) {
  const request = { format, model: modelOf[format] }
  const folded = { ...request, isStreamed: false, body: foldedCall[format] }
  const cases = [
    ['in the middle of a stream', { ...request, script: talking }, untilChunks(3)],
    ['in the middle of a silent stream', { ...request, script: silent }, untilChunks(1)],
    ['before the head', { ...request, script: { headMs: 20_000 } }, untilCalledOnce],
    ['before the first byte', { ...request, script: { firstMs: 20_000 } }, untilCalledOnce],
    ['during a folded call', { ...folded, script: talking }, untilCalledOnce],
    ['during a silent folded call', { ...folded, script: silent }, untilCalledOnce],
  ] as const
  test.for(cases)(
    `${format}: a caller who hangs up %s ends the upstream's call almost as soon as without a gateway, and frees the slot`,
    async ([, each, wait]) => {
      const { base_url, project_key: credential, upstream_url } = stack().description
      const waitABitLonger = async (call: RunningCall) => {
        await wait(call)
        await sleep(50)
      }
      const best = await bestRatio(bounds, 6, async () => {
        const baseline = await hangUpAfter(
          { baseUrl: upstream_url, credential },
          each,
          waitABitLonger,
        )
        const measured = await hangUpAfter({ baseUrl: base_url, credential }, each, waitABitLonger)
        await expect.poll(slotsUsed, beforeTheLeaseEnds).toBe(0)
        return { measured: timingOf([measured]), baseline: timingOf([baseline]) }
      })
      expect(best.p50).toBeLessThanOrEqual(bounds.p50)
    },
  )
}

test('plain calls whose callers hang up go on with their slots, in every format, until their upstreams have answered', async () => {
  const { base_url: baseUrl, project_key: credential, upstream_url } = stack().description
  await resetUpstream(upstream_url)
  const script = { headMs: 5000 }
  const calls = formats.map((format) =>
    begin({ baseUrl, credential }, { format, model: modelOf[format], isStreamed: false, script }),
  )
  await untilCalled(calls.length)
  for (const { hangUp } of calls) hangUp()
  await sleep(500)
  expect([(await stateOf(upstream_url)).open, await slotsUsed()]).toEqual([3, 3])
  await expect.poll(slotsUsed, beforeTheLeaseEnds).toBe(0)
  const { open, hungUp } = await stateOf(upstream_url)
  expect([open, hungUp.length]).toEqual([0, 0])
})

test('a hang-up in the pause before a retry frees the slot', async () => {
  const { base_url: baseUrl, project_key: credential, upstream_url } = stack().description
  await resetUpstream(upstream_url)
  const script = { error: { status: 503 } }
  for (const model of Object.values(modelOf)) {
    const call = begin({ baseUrl, credential }, { format: 'chat', model, script })
    await expect
      .poll(async () => (await stateOf(upstream_url)).requests, { interval: 2, timeout: 30_000 })
      .toBe(1)
    call.hangUp()
    await expect.poll(slotsUsed, beforeTheLeaseEnds).toBe(0)
    await resetUpstream(upstream_url)
  }
})

test('no problem is logged for calls that were hung up', async () => {
  const names = (await readdir(stack().folder)).filter((name) => name.startsWith('api-'))
  const logs = await Promise.all(names.map((name) => readFile(join(stack().folder, name), 'utf8')))
  const lines = logs.join('').split('\n')
  const isProblem = /"event":"problem".*("request_id"|uncaught_error)/
  expect(lines.filter((line) => isProblem.test(line))).toEqual([])
})
