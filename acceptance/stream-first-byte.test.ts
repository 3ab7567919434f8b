import { createTenants } from '@gatehouse/tools/start-stack'
import { redisUrl } from '@gatehouse/tools/throwaway-database'
import { afterAll, expect, onTestFinished, test } from 'vitest'

import type { BareGateway } from './support/baseline/bare-gateway.ts'
import { startChild } from './support/baseline/child.ts'
import { bestRatio, type Timing } from './support/baseline/ratio.ts'
import { begin, bodyOf, eventsOf, formats } from './support/streams/call.ts'
import type { StreamLoad } from './support/streams/load.ts'
import { startLockstep } from './support/streams/lockstep.ts'
import { catalogueOf } from './support/streams/models.ts'
import { forkUpstream } from './support/streams/upstream.ts'
import { windowWord, wordsScored } from './support/streams/windows.ts'
import { useStack } from './support/use-stack.ts'

// The pieces of an answer reach the caller as soon as the window of moderation that they are in is complete: nothing else is
// buffered on the way, and little time is added.

const pieces = 26
const lockstep = await startLockstep(pieces)
afterAll(lockstep.stop)

const upstream = await forkUpstream()
afterAll(upstream.stop)

const stack = useStack({
  models: () =>
    catalogueOf({
      ...Object.fromEntries(
        formats.map((format) => [`by-${format}`, [{ url: lockstep.url, format }]]),
      ),
      paced: [{ url: upstream.url }],
    }),
})

const pieceOf = /"type":"(text_delta|response\.output_text\.delta)"|"delta":\{"content":"[^"]/g

test.each(formats.flatMap((format) => formats.map((origin) => [format, origin] as const)))(
  '%s from an upstream of %s: a window arrives before anything is sent after the piece that completes it',
  async (format, origin) => {
    const { base_url: baseUrl, project_key: credential } = stack().description
    lockstep.restart()
    const script = { text: Array.from({ length: pieces }, () => windowWord).join(' ') }
    const call = begin({ baseUrl, credential }, { format, model: `by-${origin}`, script })
    const text = () => call.chunks.map((chunk) => chunk.text).join('')
    for (let piece = 1; piece <= pieces; piece++) {
      lockstep.sendNext()
      await expect
        .poll(() => text().match(pieceOf)?.length ?? 0, { interval: 1, timeout: 30_000 })
        .toBe(piece === pieces ? pieces : wordsScored(piece))
    }
    const answer = await call.answer
    expect([answer.status, answer.isBroken]).toEqual([200, false])
    expect(eventsOf(answer.text).length).toBeGreaterThan(pieces)
  },
)

const bounds = { p50: 3, p99: 4 }

test(`with 50 streams at once the first token takes at most ${bounds.p50} times as long as from a bare gateway at p50, ${bounds.p99} times at p99`, async () => {
  const tenants = await createTenants(stack().service, 4)
  const bareGateway = startChild(new URL('support/baseline/bare-gateway.ts', import.meta.url))
  const sender = startChild(new URL('support/streams/load.ts', import.meta.url))
  onTestFinished(() => {
    sender.stop()
    bareGateway.stop()
  })
  const bare = await bareGateway.request<{ address: string }>({
    upstreamUrl: upstream.url,
    databaseUrl: stack().database.url,
    redisUrl,
  } satisfies BareGateway)
  // Each stream lasts about a second, and one begins every 20 ms. The first two pieces come at once and complete the first window.
  const script = {
    text: `${windowWord.repeat(2)} and so on`,
    stallAfter: { pieces: 2, ms: 950 },
  }
  const load: StreamLoad = {
    addresses: [stack().description.base_url, bare.address].map((url) => `${url}/v1/messages`),
    keys: tenants.map(({ project_key }) => project_key),
    body: JSON.stringify(bodyOf({ format: 'messages', model: 'paced', script })),
    sign: 'text_delta',
    count: 100,
    everyMs: 20,
  }
  const best = await bestRatio(bounds, 12, async () => {
    const { timings } = await sender.request<{ timings: Timing[] }>(load)
    const [measured, baseline] = timings
    if (!measured || !baseline) throw new Error('Nothing was measured.')
    return { measured, baseline }
  })
  expect(best.p50).toBeLessThanOrEqual(bounds.p50)
  expect(best.p99).toBeLessThanOrEqual(bounds.p99)
}, 300_000)
