import { fork } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { createTenants } from '@gatehouse/tools/start-stack'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { afterAll, expect, test } from 'vitest'

import { begin, formats } from './support/streams/call.ts'
import { catalogueOf } from './support/streams/models.ts'
import type { Soak, SoakReport } from './support/streams/soak.ts'
import { forkUpstream, stateOf } from './support/streams/upstream.ts'
import { collectStderr, type Vitals, vitalsOf } from './support/streams/vitals.ts'
import { useStack } from './support/use-stack.ts'

// Many streams, some with callers that hang up or upstreams that fail: afterwards they have left no memory, sockets or
// slots behind. STREAM_SOAK_SECONDS=60 is the full size.

const seconds = sizeOf({ usual: 10, long: 300, variable: 'STREAM_SOAK_SECONDS' })
const streams = 500
const slots = 32
const seed = Number(process.env['STREAM_SOAK_SEED'] ?? Date.now() % 1_000_000)

const { url, stop } = await forkUpstream()
afterAll(stop)

const stack = useStack({
  processes: 2,
  environment: { NODE_OPTIONS: '--inspect-port=0' },
  models: () =>
    catalogueOf(
      Object.fromEntries(
        formats.flatMap((format) => [
          [`steady-${format}`, [{ url, format }]],
          [`failing-${format}`, [{ url, format }]],
        ]),
      ),
    ),
})

function runSoak(soak: Soak): Promise<SoakReport> {
  const child = fork(fileURLToPath(new URL('support/streams/soak.ts', import.meta.url)), {
    execArgv: [],
  })
  const report = new Promise<SoakReport>((resolve, reject) => {
    child.once('message', (message) => resolve(message as SoakReport))
    child.once('exit', (code) => reject(new Error(`The soak ended with ${code}.`)))
  })
  child.send(soak)
  return report.finally(() => child.disconnect())
}

/** Uses all slots of each key at once: a leaked slot would make one of these calls a 429. */
async function fillAllSlots(keys: readonly string[]): Promise<number[]> {
  const { base_urls } = stack().description
  const script = { firstMs: 3000, text: 'Well.' }
  const calls = keys.flatMap((credential) =>
    Array.from({ length: slots }, (_, index) => {
      const baseUrl = base_urls[index % base_urls.length] ?? ''
      return begin({ baseUrl, credential }, { format: 'chat', model: 'steady-chat', script })
    }),
  )
  const answers = await Promise.all(calls.map(({ answer }) => answer))
  return answers.map(({ status }) => status).filter((status) => status !== 200)
}

async function problemsLogged(): Promise<string[]> {
  const names = (await readdir(stack().folder)).filter((name) => /^api-.*\.log$/.test(name))
  const logs = await Promise.all(names.map((name) => readFile(join(stack().folder, name), 'utf8')))
  // Problems of calls, and uncaught errors; a busy machine may also break the process's own connections.
  const isRelevant = /"event":"problem".*("request_id"|uncaught_error)/
  const isScripted = /"what":"(upstream_error|upstream_timeout)"/
  return logs
    .flatMap((log) => log.split('\n'))
    .filter((line) => isRelevant.test(line) && !isScripted.test(line))
}

test(
  `${streams} streams of ${seconds} s, twice: each ends as planned, and nothing leaks`,
  { timeout: (4 * seconds + 120) * 1000 },
  async () => {
    console.log(`seed ${seed}`)
    const tenants = await createTenants(stack().service, 20)
    const keys = tenants.map(({ project_key }) => project_key)
    const stderr = stack().apis.map(collectStderr)
    const baseUrls = stack().description.base_urls
    const rounds: Vitals[][] = []
    for (const round of [1, 2]) {
      const report = await runSoak({ baseUrls, keys, streams, seconds, seed })
      expect(report.wrong, `round ${round} of seed ${seed}`).toEqual([])
      expect((await stateOf(url)).open).toBe(0)
      await sleep(2000)
      const vitals = await Promise.all(
        stack().apis.map((api, index) => vitalsOf(api, stderr[index] ?? { text: '' })),
      )
      console.log(`round ${round}`, report.kinds, vitals)
      for (const each of vitals) expect(each).toMatchObject({ streamsOpen: 0, requestsInFlight: 0 })
      rounds.push(vitals)
    }
    // Four keys are enough to detect a leaked slot.
    expect(await fillAllSlots(keys.slice(0, 4))).toEqual([])
    const [first = [], second = []] = rounds
    for (const [index, after] of second.entries()) {
      const before = first[index] ?? after
      expect(after.heapMegabytes).toBeLessThan(before.heapMegabytes * 1.05)
      expect(after.sockets).toBeLessThan(before.sockets + 40)
    }
    expect(await problemsLogged()).toEqual([])
    for (const { text } of stderr) {
      expect(text).not.toMatch(/Warning|MaxListeners|unhandled|Error/i)
    }
  },
)
