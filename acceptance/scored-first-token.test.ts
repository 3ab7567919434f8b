import { createTenants } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { startChild } from './support/baseline/child.ts'
import type { Timing } from './support/baseline/ratio.ts'
import { startScorerDouble, writeModerationFile } from './support/moderation/scorer-double.ts'
import { eventually } from './support/policies/enforcing.ts'
import { bodyOf } from './support/streams/call.ts'
import type { StreamLoad } from './support/streams/load.ts'
import { catalogueOf } from './support/streams/models.ts'
import { forkUpstream } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// How much later the first word of an answer comes because it is scored first: compared with the same upstream read directly,
// at the same time, so that a busy machine slows both.

const scorerMs = 80
const addedMostMs = 600
/** Sixty tokens in a second, of about four characters each. */
const words = 'The old map of the hill shows a road that none of us had seen. '
/** Each answer begins with words of its own, because scores are remembered. */
const script = { text: `Story <number>. ${words.repeat(5)}`, paceMs: 17 }

const scorer = await startScorerDouble({ delayMs: scorerMs })
const entry = { name: 'remote', adapter: 'openai', base_url: scorer.baseUrl, model: 'omni' }
const environment = await writeModerationFile({ scorers: [entry] })
const localOnly = await writeModerationFile({ accept_local_only: true })
const upstream = await forkUpstream()
afterAll(upstream.stop)
const stack = useStack({
  environment,
  models: () => catalogueOf({ paced: [{ url: upstream.url }] }),
})

const sender = startChild(new URL('support/streams/load.ts', import.meta.url))
afterAll(sender.stop)
let keys: string[] = []
beforeAll(async () => {
  const tenants = await createTenants(stack().service, 4)
  keys = tenants.map(({ project_key }) => project_key)
})

/** What a process adds to the time to the first token. */
async function measureAdded(baseUrl: string): Promise<Timing> {
  const body = bodyOf({ format: 'messages', model: 'paced', script })
  const load: StreamLoad = {
    addresses: [baseUrl, upstream.url].map((url) => `${url}/v1/messages`),
    keys,
    body: JSON.stringify(body),
    sign: 'text_delta',
    count: 10,
    everyMs: 100,
  }
  const { timings } = await sender.request<{ timings: Timing[] }>(load)
  const [measured, direct] = timings
  if (!measured || !direct) throw new Error('Nothing was measured.')
  const added = { p50: measured.p50 - direct.p50, p99: measured.p99 - direct.p99 }
  const show = ({ p50, p99 }: Timing) => `p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)}`
  console.log(`first token, ms: ${show(measured)}; direct: ${show(direct)}; added: ${show(added)}`)
  return added
}

test(`with a scorer that takes ${scorerMs} ms, the first token comes less than ${addedMostMs} ms later`, async () => {
  // A stall can only make a round slower, so one good round shows what the service can do.
  let lowest = Infinity
  for (let round = 0; round < 12 && lowest >= addedMostMs; round++) {
    const { p50 } = await measureAdded(stack().description.base_url)
    lowest = Math.min(lowest, p50)
  }
  expect(lowest).toBeLessThan(addedMostMs)
  // Less would mean that the first window was not waited for.
  expect(lowest).toBeGreaterThan(scorerMs)
}, 300_000)

test('with the local scorer only the first window is waited for, and no scorer', async () => {
  const api = await stack().startApi('api-local', localOnly)
  await expect
    .poll(async () => (await fetch(`${api.baseUrl}/health/ready`)).status, eventually)
    .toBe(200)
  const { p50 } = await measureAdded(api.baseUrl)
  expect(p50).toBeGreaterThan(0)
}, 300_000)
