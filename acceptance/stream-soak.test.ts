import { fork } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { afterAll, expect, test } from 'vitest'

import { countSlots } from './support/limited-call.ts'
import { begin, formats, type RunningCall } from './support/streams/call.ts'
import { catalogueOf } from './support/streams/models.ts'
import type { Soak, SoakReport } from './support/streams/soak.ts'
import { forkUpstream, stateOf } from './support/streams/upstream.ts'
import { collectStderr, openIn, type Vitals, vitalsOf } from './support/streams/vitals.ts'
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

const openAtUpstream = async () => (await stateOf(url)).open

/** Below the minute after which the lease of a slot expires, whether it leaked or not. */
const eventually = { timeout: 40_000, interval: 100 }

/** Some streams have ended for their callers before they have for the service. */
async function untilNothingIsOpen(tenants: readonly Tenant[]) {
  await expect.poll(openAtUpstream, eventually).toBe(0)
  for (const api of stack().apis) {
    await expect.poll(() => openIn(api), eventually).toEqual({ streams: 0, requests: 0 })
  }
  const slotsTaken = async () => {
    const counts = tenants.map((tenant) => countSlots(stack(), tenant.organization_id))
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }
  await expect.poll(slotsTaken, eventually).toBe(0)
}

/** Holds all slots of each key at the same time; returns the statuses of calls that got none. */
async function holdAllSlots(keys: readonly string[]): Promise<number[]> {
  const { base_urls } = stack().description
  const script = { firstMs: 50_000, text: 'Well.' }
  const calls: RunningCall[] = []
  const ended: number[] = []
  const decided = async () => (await openAtUpstream()) + ended.length
  for (const credential of keys) {
    for (let slot = 0; slot < slots; slot++) {
      const target = { baseUrl: base_urls[slot % base_urls.length] ?? '', credential }
      const call = begin(target, { format: 'chat', model: 'steady-chat', script })
      call.answer.then(({ status }) => ended.push(status)).catch(() => undefined)
      calls.push(call)
    }
    await expect.poll(decided, eventually).toBe(calls.length)
  }
  const refused = ended.filter((status) => status !== 200)
  for (const { hangUp } of calls) hangUp()
  return refused
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

/** The processes that hold more than they did before. */
const findGrown = (before: readonly Vitals[], after: readonly Vitals[]) =>
  after.filter(({ heapMegabytes, sockets }, index) => {
    const first = before[index]!
    return heapMegabytes >= first.heapMegabytes * 1.05 || sockets >= first.sockets + 40
  })

test(
  `${streams} streams of ${seconds} s, twice: each ends as planned, and nothing leaks`,
  { timeout: (10 * seconds + 600) * 1000 },
  async () => {
    console.log(`seed ${seed}`)
    const tenants = await createTenants(stack().service, 20)
    const keys = tenants.map(({ project_key }) => project_key)
    const stderr = stack().apis.map(collectStderr)
    const baseUrls = stack().description.base_urls
    const readVitals = () =>
      Promise.all(stack().apis.map((api, index) => vitalsOf(api, stderr[index]!)))
    const rounds: Vitals[][] = []
    for (const round of [1, 2]) {
      const report = await runSoak({ baseUrls, keys, streams, seconds, seed })
      expect(report.wrong, `round ${round} of seed ${seed}`).toEqual([])
      await untilNothingIsOpen(tenants)
      // What is freed a little later must not count as held before.
      if (round === 1) await sleep(2000)
      rounds.push(await readVitals())
      console.log(`round ${round}`, report.kinds, rounds.at(-1))
    }
    // What a process frees late is no leak, such as connections that it keeps open for a while.
    const grown = async () => findGrown(rounds[0]!, await readVitals())
    await expect.poll(grown, { timeout: 120_000, interval: 1000 }).toEqual([])
    // Four keys are enough to detect a leaked slot.
    expect(await holdAllSlots(keys.slice(0, 4))).toEqual([])
    await untilNothingIsOpen(tenants)
    expect(await problemsLogged()).toEqual([])
    for (const { text } of stderr) {
      expect(text).not.toMatch(/Warning|MaxListeners|unhandled|Error/i)
    }
  },
)
