import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createClient } from '@gatehouse/contract/client'
import { readAuditKeys } from '@gatehouse/contract/exports/audit-log'
import { type AllDoubles, startAllDoubles } from '@gatehouse/tools/destinations/all-doubles'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { type ApiProcess, stopProcess } from '@gatehouse/tools/service-process'
import { createTenants, type Stack, startStack, type Tenant } from '@gatehouse/tools/start-stack'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { type ThrowawayPostgres, startThrowawayPostgres } from '@gatehouse/tools/throwaway-postgres'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { runApiLoad } from './support/audit/api-load.ts'
import { createArrivals } from './support/audit/arrivals.ts'
import { writeBulk } from './support/audit/bulk-events.ts'
import { findFalseCheckpoints, type PublishedKey } from './support/audit/checkpoints.ts'
import {
  createSinks,
  drainDoubles,
  exportSettings,
  findDoubleProblems,
  readSinks,
  sinkTypes,
  takeEarlierRecords,
} from './support/audit/sinks.ts'
import { countHolds } from './support/credits/books.ts'
import { crashModels, createRandom } from './support/credits/calls.ts'
import { hardlyLimited } from './support/hardly-limited.ts'

// Every event that was acknowledged reaches every kind of sink, in the order of its number and with nothing missing, while
// processes are killed and PostgreSQL crashes. AUDIT_EVENTS says how many events, AUDIT_SEED repeats the faults.

const events = sizeOf({ usual: 100_000, long: 1_000_000, variable: 'AUDIT_EVENTS' })
const seed = Number(process.env['AUDIT_SEED'] ?? Date.now() % 2 ** 31)
const random = createRandom(seed)
const organizations = 4
const kills = 10
const crashesAt = [3, 7]
const awayMs = 1500
const apiCalls = Math.ceil(events / 20)
/** Nothing has arrived for so long: then nothing will. A killed worker holds its cursors for 30 seconds. */
const stalledMs = 120_000
/** After so many events there is a checkpoint. */
const checkpointEvery = 4096
const limits = hardlyLimited()

let folder: string
let postgres: ThrowawayPostgres
let doubles: AllDoubles
let upstream: Awaited<ReturnType<typeof startScriptedUpstream>>
let stack: Stack
let tenants: Tenant[]
let draining: NodeJS.Timeout
let keys: readonly PublishedKey[]
let statuses: Map<number, number>
/** Two API processes, then two workers. An entry is undefined while its process is dead. */
let running: (ApiProcess | undefined)[]

const arrivals = createArrivals()
/** Ids of requests that were answered, and of events that were committed. */
const acknowledged: { api: string[]; bulk: string[] } = { api: [], bulk: [] }
let faults = 0
const done = { apiKills: 0, workerKills: 0, crashes: 0, deaths: 0, filesLeft: 0 }
const atMs = { begin: 0, loaded: 0, lastFault: 0, end: 0 }
let isDelivered = false

beforeAll(
  async () => {
    console.log(`audit delivery with killed processes: seed ${seed}, ${events} events`)
    await startEverything()
    atMs.begin = performance.now()
    await loadAndKill()
    isDelivered = await untilDelivered()
    atMs.end = performance.now()
    report()
    const client = createClient({ baseUrl: pickAlive() ?? '' })
    keys = (await client.call(readAuditKeys, {})).keys
  },
  10 * events + 600_000,
)
afterAll(async () => {
  clearInterval(draining)
  await stack?.stop()
  await upstream?.stop()
  await doubles?.[Symbol.asyncDispose]()
  await postgres?.stop()
  if (folder) await rm(folder, { recursive: true, force: true })
})

async function startEverything() {
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-audit-'))
  postgres = await startThrowawayPostgres()
  doubles = await startAllDoubles()
  upstream = await startScriptedUpstream()
  stack = await startStack({
    server: postgres.url,
    models: () => crashModels(upstream.url, 3),
    environment: {
      ...limits,
      ...(await exportSettings(doubles, folder)),
      CREDIT_HOLD_GRACE_SECONDS: '5',
    },
  })
  const [api, worker, made] = await Promise.all([
    start(1),
    start(3),
    createTenants(stack.service, organizations),
  ])
  running = [stack.apis[0], api, stack.worker, worker]
  tenants = made
  draining = setInterval(() => drainDoubles(doubles, arrivals), 50)
  for (const tenant of tenants) {
    await createSinks(callerOf(tenant), doubles)
    await takeEarlierRecords(callerOf(tenant), arrivals)
  }
}

const callerOf = ({ admin_key }: Tenant) => ({
  baseUrl: pickAlive() ?? stack.description.base_url,
  credential: admin_key,
})

/** Like a load balancer: dead processes get no calls. */
function pickAlive(): string | undefined {
  const alive = running.slice(0, 2).filter((each) => each !== undefined)
  return alive[random(alive.length)]?.baseUrl
}

/** The second of each kind has a state folder of its own, as on another machine. */
const start = (place: number) =>
  retry(() => {
    const elsewhere = { STATE_DIRECTORY: join(stack.folder, 'state-elsewhere') }
    const further: Record<string, string> = place % 2 === 0 ? {} : elsewhere
    return place < 2 ? stack.startApi('api', further) : stack.startWorker('worker', further)
  })

/** Retries what fails while PostgreSQL is down, as a supervisor does. */
async function retry<T>(work: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + 60_000; ;) {
    try {
      return await work()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await sleep(200)
    }
  }
}

/**
 * Load and faults wait for one another, so that every fault meets a load, however fast the machine is: a part of the load
 * is sent after each fault, and the next fault comes in the middle of it.
 */
async function loadAndKill() {
  let isOver = false
  const mayHave = (total: number) => Math.min(total, (total * (faults + 1)) / (kills + 1))
  const calls = runApiLoad({
    clients: 16,
    tenants,
    random,
    pickProcess: pickAlive,
    allowed: () => mayHave(apiCalls),
    isOver: () => isOver,
    onAcknowledged: (requestId) => acknowledged.api.push(requestId),
  })
  const bulk = {
    url: stack.database.url,
    organizations: tenants.map(({ organization_id }) => organization_id),
    events: events - apiCalls,
    random,
    allowed: () => mayHave(events - apiCalls),
    onAcknowledged: (ids: readonly string[]) => acknowledged.bulk.push(...ids),
  }
  try {
    await Promise.all([writeBulk(bulk, 6), killRepeatedly(), untilAcknowledged(1)])
  } finally {
    isOver = true
    statuses = await calls
    atMs.loaded = performance.now()
  }
}

async function untilAcknowledged(share: number) {
  const { api, bulk } = acknowledged
  const isAcknowledged = () =>
    api.length >= apiCalls * share && bulk.length >= (events - apiCalls) * share
  let [seen, seenAtMs] = [0, performance.now()]
  while (!isAcknowledged()) {
    await sleep(10)
    const now = api.length + bulk.length
    if (now > seen) [seen, seenAtMs] = [now, performance.now()]
    if (performance.now() - seenAtMs > stalledMs) throw new Error('The load has stopped.')
  }
}

/** A process that was killed starts again while the next one is killed. */
async function killRepeatedly() {
  const victims = shuffle([0, 0, 1, 2, 2, 2, 3, 3])
  for (const [api, number] of crashesAt.entries()) victims.splice(number, 0, api)
  const starting: Promise<void>[] = running.map(async () => undefined)
  for (const [number, victim] of victims.entries()) {
    await untilAcknowledged((number + 0.25 + random(50) / 100) / (kills + 1))
    await starting[victim]
    const crash = crashesAt.includes(number) ? await crashPostgres() : undefined
    starting[victim] = (await killAndStart(victim)).successor
    await crash?.restart
    faults++
    atMs.lastFault = performance.now()
  }
  await Promise.all(starting)
}

const shuffle = (list: number[]) =>
  list
    .map((item) => ({ item, at: random(1_000_000) }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ item }) => item)

/** Returns when the process is dead; what it returns ends when its successor runs. */
async function killAndStart(place: number) {
  const [victim, isApi] = [running[place], place < 2]
  running[place] = undefined
  const { child } = victim!
  if (child.exitCode !== null || child.signalCode !== null) done.deaths++
  await stopProcess(child, 'SIGKILL')
  done[isApi ? 'apiKills' : 'workerKills']++
  return { successor: start(place).then((started) => void (running[place] = started)) }
}

/** Returns when events wait on the disks of API processes, one of which is killed then. */
async function crashPostgres() {
  await postgres.crash()
  done.crashes++
  for (const deadline = Date.now() + 15_000; Date.now() < deadline; await sleep(20)) {
    const files = await countWaitingFiles()
    done.filesLeft += files
    if (files > 0) break
  }
  return { restart: sleep(awayMs).then(postgres.start) }
}

/** Waits until nothing is left to be delivered, for as long as something still arrives. */
async function untilDelivered(): Promise<boolean> {
  let [seen, seenAtMs] = [0, performance.now()]
  let pending: string | undefined
  while (performance.now() - seenAtMs < stalledMs) {
    if (arrivals.records() > seen) [seen, seenAtMs] = [arrivals.records(), performance.now()]
    // A machine that is busy with deliveries may be too slow for a question: it is asked again.
    pending = await findPending().catch(String)
    if (pending === undefined) return true
    await sleep(250)
  }
  console.log(`not delivered: ${pending}`)
  return false
}

/** What is left to be delivered, or has to be written first. */
async function findPending(): Promise<string | undefined> {
  if ((await countWaitingFiles()) > 0) return 'files wait for the database'
  if ((await countHolds(stack.database.url)) > 0) return 'calls are not settled'
  const rows = await countEvents()
  const counts = new Map(rows.map(({ id, count }) => [id, Number(count)]))
  for (const tenant of tenants) {
    const { organization_id: id } = tenant
    for (const type of sinkTypes) {
      const sink = arrivals.sinkOf(id, type)
      const last = sink?.last ?? 0
      const signed = Math.max(0, ...(sink?.checkpoints.keys() ?? []))
      if (last < (counts.get(id) ?? 0)) return `${type} of ${id}: ${last} of ${counts.get(id)}`
      if (last - signed >= checkpointEvery) return `${type} of ${id}: signed up to ${signed}`
    }
    const late = (await readSinks(callerOf(tenant))).find((sink) => sink.pending_events > 0)
    if (late) return `${late.type} of ${id} has ${late.pending_events} pending events`
  }
  return undefined
}

async function countEvents() {
  const client = new pg.Client({ connectionString: stack.database.url })
  await client.connect()
  try {
    const text = 'select organization_id as id, count(*) from event group by 1'
    return (await client.query<{ id: string; count: string }>(text)).rows
  } finally {
    await client.end()
  }
}

/** Without those that a process was writing when it was killed: nobody was told of what was to be in them. */
async function countWaitingFiles(): Promise<number> {
  const names = await readdir(stack.folder, { recursive: true })
  return names.filter((name) => /(settlements|events)-[^.]*$/.test(name)).length
}

const allAcknowledged = () => [...acknowledged.api, ...acknowledged.bulk]

const eachSink = () =>
  tenants.flatMap(({ organization_id: id }) =>
    sinkTypes.map((type) => ({ id, type, sink: arrivals.sinkOf(id, type) })),
  )

function report() {
  const seconds = (from: number, to: number) => Math.round((to - from) / 100) / 10
  const total = tenants.reduce(
    (sum, { organization_id: id }) => sum + (arrivals.sinkOf(id, 's3')?.last ?? 0),
    0,
  )
  const repeated = sinkTypes.map((type) => {
    const sinks = eachSink().filter((each) => each.type === type)
    return `${type} ${sinks.reduce((sum, { sink }) => sum + (sink?.repeated ?? 0), 0)}`
  })
  console.log(
    `acknowledged ${acknowledged.api.length} by the API and ${acknowledged.bulk.length} by the database, numbered ${total}, records ${arrivals.records()}\n` +
      `answers ${[...statuses].map(([status, count]) => `${status}: ${count}`).join(', ')}\n` +
      `killed ${done.apiKills} API processes and ${done.workerKills} workers, crashed PostgreSQL ${done.crashes} times with ${done.filesLeft} files of events on disk\n` +
      `load ${seconds(atMs.begin, atMs.loaded)} s, all delivered after ${seconds(atMs.begin, atMs.end)} s: ` +
      `${Math.round(total / seconds(atMs.begin, atMs.end))} events/s into five sinks each\n` +
      `zero pending ${seconds(atMs.lastFault, atMs.end)} s after the last fault\n` +
      `arrived again: ${repeated.join(', ')}`,
  )
}

test('processes were killed and PostgreSQL crashed under load', () => {
  expect(done).toMatchObject({ apiKills: 5, workerKills: 5, crashes: 2, deaths: 0 })
  expect(done.filesLeft).toBeGreaterThan(0)
  expect(allAcknowledged().length).toBeGreaterThanOrEqual(events)
  expect(new Set(allAcknowledged()).size).toBe(allAcknowledged().length)
})

test('in the end no sink has pending events', () => {
  expect(isDelivered).toBe(true)
})

test('every acknowledged event is in every sink', () => {
  const lost = allAcknowledged().filter((id) => arrivals.numberOf(id) === undefined)
  expect(lost.slice(0, 10)).toEqual([])
  // All sinks of an organization have the same numbers up to the same last one: what one has, all have.
  for (const { organization_id: id } of tenants) {
    const lasts = sinkTypes.map((type) => arrivals.sinkOf(id, type)?.last)
    expect(new Set(lasts).size, `${id}: ${lasts.join(', ')}`).toBe(1)
    expect(arrivals.missingOf(id)).toEqual([])
  }
})

test('the numbers of an organization arrive in order, without a gap, and name the same event everywhere', () => {
  expect(arrivals.findings).toEqual([])
})

test('no destination had a reason to complain', () => {
  expect(findDoubleProblems(doubles)).toEqual([])
})

test('the checkpoints that each sink got are signed, chained, and have the root of what it got', () => {
  for (const { id, type, sink } of eachSink()) {
    const checkpoints = [...(sink?.checkpoints.values() ?? [])]
    expect(checkpoints.length, `${type} of ${id}`).toBeGreaterThan(0)
    const found = findFalseCheckpoints(id, checkpoints, arrivals.leavesOf(id), keys)
    expect(found, type).toEqual([])
  }
})
