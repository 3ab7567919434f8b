import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { readLimits } from '@gatehouse/contract/limits'
import { createProject } from '@gatehouse/contract/project'
import {
  createOrganization,
  type NewOrganization,
  runOperator,
  type Stack,
  startStack,
} from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type OwnRedis, startOwnRedis } from './support/own-redis.ts'

// Redis is stopped under load and comes back with everything lost. Callers see no failure, and what all
// processes let through together stays within one call per process of every limit, in every minute.
// Judged by what callers were answered, with this file's own arithmetic.

const processes = 3
const perSecond = 15
const windowMs = 60_000
const stopAtMs = 30_000
const returnAtMs = 45_000
const endAtMs = 105_000
const noticedMs = 2000
const backMs = 5000

type Scope = 'organization' | 'project' | 'key'
type Place = Record<Scope, string>
type Caller = Place & { credential: string }
type Load = {
  name: string
  fromMs: number
  limits: Record<Scope, number>
  callers: Caller[]
  owner: NewOrganization
}
type Answered = Place & {
  load: string
  process: number
  status: number
  sentAtMs: number
  admittedAtMs: number
}
type Sample = { process: number; atMs: number }

let redis: OwnRedis
let stack: Stack
let loads: Load[]
const log: Answered[] = []
const reads: (Sample & { status: number; isExact: boolean | undefined })[] = []
const gauges: (Sample & { isLocal: boolean })[] = []
let startedAtMs: number
let returnedAtMs: number
let slotsLeft: number[]

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
const at = (ms: number) => sleep(startedAtMs + ms - Date.now())

beforeAll(async () => {
  redis = await startOwnRedis()
  stack = await startStack({
    models: null,
    ...{ processes, redis: redis.url, entry: 'testing/limited-main.ts', hasLimits: true },
    environment: {
      ADMIN_REQUESTS_PER_MINUTE: '100000',
      ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION: '100000',
    },
  })
  loads = await prepareLoads()
  startedAtMs = Date.now()
  const [steady, holding] = [loads.slice(0, 3), loads[3]!]
  const running = [...steady.map(runLoad), holdAcrossReturn(holding), watch()]
  await at(stopAtMs)
  await redis.stop()
  await at(returnAtMs)
  redis = await startOwnRedis({ port: redis.port })
  returnedAtMs = Date.now()
  await Promise.all(running)
  await sleep(1000)
  slotsLeft = await Promise.all(loads.map(countSlots))
  report()
}, 240_000)
afterAll(async () => {
  await stack.stop()
  await redis.stop()
})

/** One organization is full before the stop, one half full, one starts while Redis is away; one holds slots. */
async function prepareLoads(): Promise<Load[]> {
  const free = { organization: 120, project: 90, key: 60 }
  const paid = { organization: 240, project: 180, key: 120 }
  const [midway, late, holding] = await Promise.all([
    createOrganization(stack.service, 'Midway Ltd'),
    createOrganization(stack.service, 'Late Ltd'),
    createOrganization(stack.service, 'Holding Ltd'),
  ])
  await runOperator(stack.service, [
    ...['payment', midway.organization_id, '--id', 'payment-1', '--usd', '20'],
  ])
  await sleep(5000) // until the tier has reached every process
  const make = async (name: string, owner: NewOrganization, fromMs: number, limits = free) => ({
    ...{ name, owner, fromMs, limits, callers: await makeCallers(owner) },
  })
  return Promise.all([
    make('full before', stack.description, 0),
    make('half full', midway, stopAtMs - 6000, paid),
    make('new while away', late, stopAtMs + 3000),
    make('holding', holding, returnAtMs),
  ])
}

/** Two projects, three keys, unevenly used: every scope has its turn to be the one that refuses. */
async function makeCallers(owner: NewOrganization): Promise<Caller[]> {
  const client = createClient({
    ...{ baseUrl: stack.description.base_url, credential: owner.admin_key },
  })
  const second = await client.call(createProject, { body: { name: 'Second' } })
  const makeKey = async (project: string) => {
    const sent = { params: { project_id: project }, body: { name: 'Loaded' } }
    const { id, value } = await client.call(createProjectApiKey, sent)
    return { organization: owner.organization_id, project, key: id, credential: value }
  }
  const busy = await makeKey(owner.project_id)
  const calm = await makeKey(owner.project_id)
  const other = await makeKey(second.id)
  return [busy, calm, busy, other, busy, busy, calm, busy, other, busy]
}

async function runLoad(load: Load) {
  await at(load.fromMs)
  const calls: Promise<void>[] = []
  for (let index = 0; Date.now() < startedAtMs + endAtMs; index++) {
    const caller = load.callers[index % load.callers.length]!
    calls.push(callOnce(load, index % processes, { caller, holdMs: 20 + ((index * 37) % 180) }))
    await at(load.fromMs + ((index + 1) * 1000) / perSecond)
  }
  await Promise.all(calls)
}

/** Two processes hold all slots of a key across the return; the third asks for one meanwhile. */
async function holdAcrossReturn(load: Load) {
  const caller = load.callers[0]!
  await at(load.fromMs - 1000)
  const calls = [0, 0, 1, 1].map((process) => callOnce(load, process, { caller, holdMs: 9000 }))
  await at(load.fromMs)
  for (let count = 0; count < 24; count++) {
    calls.push(callOnce(load, 2, { caller, holdMs: 0 }))
    await sleep(250)
  }
  await Promise.all(calls)
}

type Wish = { caller: Caller; holdMs: number }

async function callOnce({ name }: Load, process: number, { caller, holdMs }: Wish) {
  const { credential, ...place } = caller
  const sentAtMs = Date.now()
  const response = await fetch(`${stack.apis[process]!.baseUrl}/v1/chat/completions/limited`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ tokens: 10, used: 5, holdMs }),
  })
  const answer = (await response.json()) as { admitted_at_ms?: number }
  const admittedAtMs = answer.admitted_at_ms ?? 0
  log.push({ ...place, load: name, process, status: response.status, sentAtMs, admittedAtMs })
}

/** What each process says about itself, a few times a second. */
async function watch() {
  const authorization = `Bearer ${stack.description.admin_key}`
  while (Date.now() < startedAtMs + endAtMs) {
    await Promise.all(
      stack.apis.map(async ({ baseUrl, metricsUrl }, process) => {
        const atMs = Date.now()
        const metrics = await (await fetch(metricsUrl)).text()
        gauges.push({
          process,
          atMs,
          isLocal: /^gatehouse_limits_local\{kind="inference"\} 1$/m.test(metrics),
        })
        const response = await fetch(`${baseUrl}${readLimits.path}`, { headers: { authorization } })
        const { is_exact: isExact } = (await response.json()) as { is_exact?: boolean }
        reads.push({ process, atMs, status: response.status, isExact })
      }),
    )
    await sleep(250)
  }
}

const countSlots = async ({ owner }: Load) =>
  Number(
    await redis.ask(
      'ZCOUNT',
      `${stack.database.name}:rl:{${owner.organization_id}}:l`,
      String(Date.now()),
      '+inf',
    ),
  )

const admittedOf = (load: Load) =>
  log.filter(({ load: name, status }) => name === load.name && status === 200)

/** The most that were let in within any 60 seconds, by the clock of Redis. */
function mostInAnyMinute(times: number[]): number {
  const sorted = times.toSorted((left, right) => left - right)
  let [first, most] = [0, 0]
  for (const [last, atMs] of sorted.entries()) {
    while (sorted[first]! <= atMs - windowMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

function mostByPlace(load: Load) {
  return (['organization', 'project', 'key'] as const).flatMap((scope) =>
    [...Map.groupBy(admittedOf(load), (each) => each[scope])].map(([id, calls]) => ({
      ...{ scope, id, limit: load.limits[scope] },
      most: mostInAnyMinute(calls.map(({ admittedAtMs }) => admittedAtMs)),
    })),
  )
}

const phaseOf = ({ sentAtMs }: { sentAtMs: number }) =>
  sentAtMs < startedAtMs + stopAtMs ? 'before' : sentAtMs < returnedAtMs ? 'away' : 'after'

function report() {
  for (const load of loads) {
    const admitted = admittedOf(load)
    const count = (phase: string) => admitted.filter((each) => phaseOf(each) === phase).length
    const places = mostByPlace(load).map(({ scope, limit, most }) => `${scope} ${most}/${limit}`)
    console.log(
      `${load.name}: let in ${count('before')} before, ${count('away')} while away, ${count('after')} after; ` +
        `most in any 60 s: ${places.join(', ')}`,
    )
  }
  const statuses = Map.groupBy(log, ({ status }) => status)
  console.log(
    'answers',
    [...statuses].map(([status, all]) => `${status}: ${all.length}`).join(', '),
  )
  console.log('slots left', slotsLeft.join(', '))
}

const isAway = ({ atMs }: Sample) =>
  atMs > startedAtMs + stopAtMs + noticedMs && atMs < returnedAtMs - 100

test('no call fails when Redis stops or returns: each is let in or refused by a limit', () => {
  expect(log.length).toBeGreaterThan(perSecond * 150)
  expect(log.filter(({ status }) => status !== 200 && status !== 429)).toEqual([])
})

test('limits can be read all the time', () => {
  const failed = reads.filter(({ status }) => status !== 200)
  expect(
    failed.map(({ process, status, atMs }) => ({
      process,
      status,
      afterStopMs: atMs - startedAtMs - stopAtMs,
    })),
  ).toEqual([])
})

test('in no 60 seconds more are let in than the limit and one per process, in any scope', () => {
  const places = loads.flatMap((load) =>
    mostByPlace(load).map((each) => ({ ...each, load: load.name })),
  )
  expect(places.length).toBeGreaterThan(18)
  expect(places.filter(({ most, limit }) => most > limit + processes)).toEqual([])
})

test('while Redis is away calls are let in, by each process up to its share', () => {
  const late = loads[2]!
  const away = admittedOf(late).filter((each) => phaseOf(each) === 'away')
  for (let process = 0; process < processes; process++) {
    const own = away.filter((each) => each.process === process)
    expect(own.length).toBeGreaterThan(10)
    expect(own.length).toBeLessThanOrEqual(Math.ceil(late.limits.organization / processes))
  }
})

test('each process says that it counts by itself while Redis is away', () => {
  const away = gauges.filter(isAway)
  expect(away.length).toBeGreaterThan(processes * 10)
  expect(away.filter(({ isLocal }) => !isLocal)).toEqual([])
  expect(reads.filter(isAway).filter(({ isExact }) => isExact === true)).toEqual([])
})

test(`each process counts in Redis again within ${backMs / 1000} seconds of its return`, () => {
  for (let process = 0; process < processes; process++) {
    const isOwn = (each: Sample) => each.process === process && each.atMs > returnedAtMs
    const sayings = [
      gauges.filter(isOwn).find(({ isLocal }) => !isLocal),
      reads.filter(isOwn).find(({ isExact }) => isExact === true),
    ]
    const afterMs = sayings.map((first) => (first?.atMs ?? Infinity) - returnedAtMs)
    console.log(`process ${process} counts in Redis again after ${afterMs.join(' and ')} ms`)
    expect(Math.max(...afterMs)).toBeLessThanOrEqual(backMs)
  }
})

test('when all calls are over no slot is held any more', () => {
  expect(slotsLeft).toEqual(loads.map(() => 0))
})
