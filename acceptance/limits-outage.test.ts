import { connect } from 'node:net'

import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { readLimits } from '@gatehouse/contract/limits'
import { createProject } from '@gatehouse/contract/project'
import type { ApiProcess } from '@gatehouse/tools/service-process'
import {
  createOrganization,
  type NewOrganization,
  runOperator,
  type Stack,
  startStack,
} from '@gatehouse/tools/start-stack'
import { type ThrowawayRedis, startThrowawayRedis } from '@gatehouse/tools/throwaway-redis'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { startPoller } from './support/baseline/poller.ts'

// Redis is stopped under load and comes back empty. No call fails, and in every minute all processes together admit at
// most one call per process beyond each limit. This is computed from the answers alone.

const processes = 3
const perSecond = 15
const windowMs = 60_000
const stopAtMs = 12_000
const returnAtMs = stopAtMs + 15_000
/** A whole window after the return. */
const endAtMs = returnAtMs + windowMs
/** Processes probe Redis every 500 ms, and must notice its stop within 2 seconds and its return within 5. */
const probeEveryMs = 500
const noticedProbes = 4
const backProbes = 10

type Scope = 'organization' | 'project' | 'key'
type ScopeIds = Record<Scope, string>
type Caller = ScopeIds & { credential: string }
type Load = {
  name: string
  fromMs: number
  limits: Record<Scope, number>
  callers: Caller[]
  owner: NewOrganization
}
type Answered = ScopeIds & {
  load: string
  process: number
  status: number
  sentAtMs: number
  admittedAtMs: number
}
type Sample = { process: number; atMs: number }

let redis: ThrowawayRedis
let stack: Stack
let loads: Load[]
const log: Answered[] = []
const reads: (Sample & { status: number; isExact: boolean | undefined })[] = []
const gauges: (Sample & { isLocal: boolean })[] = []
let startedAtMs: number
let stoppedAtMs: number
let returnedAtMs: number
let slotsLeft: number[]
/** The longest time between two probes of the baseline: while processes notice the stop, and after the return. */
let probeMs: { away: number; back: number }

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
const at = (ms: number) => sleep(startedAtMs + ms - Date.now())

beforeAll(async () => {
  redis = await startThrowawayRedis()
  stack = await startStack({
    models: null,
    processes,
    redis: redis.url,
    program: 'limited-main',
    hasLimits: true,
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
  const poller = startPoller(probeEveryMs, () => probe(redis.port))
  await redis.stop()
  stoppedAtMs = Date.now()
  // A process that counts locally stays there, so only pauses in the time it has to notice the stop count.
  await at(stopAtMs + 2 * noticedProbes * probeEveryMs)
  const away = poller.longestPauseMs()
  await at(returnAtMs)
  redis = await startThrowawayRedis({ port: redis.port })
  returnedAtMs = Date.now()
  const returnedAt = performance.now()
  await Promise.all(running)
  probeMs = { away, back: poller.longestPauseMs(returnedAt) }
  await poller.stop()
  const areFree = async () => {
    slotsLeft = await Promise.all(loads.map(countSlots))
    return slotsLeft.every((count) => count === 0)
  }
  // Far below the minute after which the lease of a slot expires.
  await vi.waitUntil(areFree, { timeout: 20_000, interval: 50 }).catch(() => undefined)
  report()
}, 300_000)
afterAll(async () => {
  await stack.stop()
  await redis.stop()
})

/** A probe ends when Redis has answered or refused the connection. */
const probe = (port: number) =>
  new Promise<void>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => socket.write('PING\r\n'))
    const end = () => {
      socket.destroy()
      resolve()
    }
    socket.once('data', end).once('error', end)
  })

/** One organization is at its limit before the stop, one at half, one starts while Redis is away; one holds slots. */
async function prepareLoads(): Promise<Load[]> {
  const free = { organization: 120, project: 90, key: 60 }
  const paid = { organization: 240, project: 180, key: 120 }
  const [midway, late, holding] = await Promise.all([
    createOrganization(stack.service, 'Midway Ltd'),
    createOrganization(stack.service, 'Late Ltd'),
    createOrganization(stack.service, 'Holding Ltd'),
  ])
  await runOperator(stack.service, [
    'payment',
    midway.organization_id,
    '--id',
    'payment-1',
    '--usd',
    '20',
  ])
  await untilTier(midway, 'tier_1')
  const make = async (name: string, owner: NewOrganization, fromMs: number, limits = free) => ({
    name,
    owner,
    fromMs,
    limits,
    callers: await makeCallers(owner),
  })
  return Promise.all([
    make('at its limit', stack.description, 0),
    make('at half its limit', midway, stopAtMs - 6000, paid),
    make('new while away', late, stopAtMs + 3000),
    make('holding', holding, returnAtMs),
  ])
}

async function untilTier(owner: NewOrganization, tier: string) {
  const authorization = `Bearer ${owner.admin_key}`
  const readTier = async ({ baseUrl }: ApiProcess) => {
    const response = await fetch(`${baseUrl}${readLimits.path}`, { headers: { authorization } })
    return ((await response.json()) as { tier: string }).tier
  }
  const isEverywhere = async () =>
    (await Promise.all(stack.apis.map(readTier))).every((each) => each === tier)
  await vi.waitUntil(isEverywhere, { timeout: 60_000, interval: 250 })
}

/** Two projects and three keys, used unevenly, so that every scope refuses calls at some time. */
async function makeCallers(owner: NewOrganization): Promise<Caller[]> {
  const client = createClient({
    baseUrl: stack.description.base_url,
    credential: owner.admin_key,
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

/** Two processes hold all slots of a key while Redis returns; the third tries to get one meanwhile. */
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

type CallOptions = { caller: Caller; holdMs: number }

async function callOnce({ name }: Load, process: number, { caller, holdMs }: CallOptions) {
  const { credential, ...ids } = caller
  const sentAtMs = Date.now()
  const response = await fetch(`${stack.apis[process]!.baseUrl}/v1/chat/completions/limited`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ tokens: 10, used: 5, holdMs }),
  })
  const answer = (await response.json()) as { admitted_at_ms?: number }
  const admittedAtMs = answer.admitted_at_ms ?? 0
  log.push({ ...ids, load: name, process, status: response.status, sentAtMs, admittedAtMs })
}

/** Reads what each process reports about itself, a few times a second. */
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
    await redis.command(
      'ZCOUNT',
      `${stack.database.name}:rl:{${owner.organization_id}}:l`,
      String(Date.now()),
      '+inf',
    ),
  )

const admittedOf = (load: Load) =>
  log.filter(({ load: name, status }) => name === load.name && status === 200)

/** The highest number of calls admitted within any 60 seconds, by the clock of Redis. */
function mostInAnyMinute(times: number[]): number {
  const sorted = times.toSorted((left, right) => left - right)
  let [first, most] = [0, 0]
  for (const [last, atMs] of sorted.entries()) {
    while (sorted[first]! <= atMs - windowMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

function mostByScope(load: Load) {
  return (['organization', 'project', 'key'] as const).flatMap((scope) =>
    [...Map.groupBy(admittedOf(load), (each) => each[scope])].map(([id, calls]) => ({
      scope,
      id,
      limit: load.limits[scope],
      most: mostInAnyMinute(calls.map(({ admittedAtMs }) => admittedAtMs)),
    })),
  )
}

const phaseOf = ({ sentAtMs }: { sentAtMs: number }) =>
  sentAtMs < stoppedAtMs ? 'before' : sentAtMs < returnedAtMs ? 'away' : 'after'

function report() {
  for (const load of loads) {
    const admitted = admittedOf(load)
    const count = (phase: string) => admitted.filter((each) => phaseOf(each) === phase).length
    const scopes = mostByScope(load).map(({ scope, limit, most }) => `${scope} ${most}/${limit}`)
    console.log(
      `${load.name}: admitted ${count('before')} before, ${count('away')} while away, ${count('after')} after; ` +
        `most in any 60 s: ${scopes.join(', ')}`,
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
  atMs > stoppedAtMs + noticedProbes * probeMs.away && atMs < returnedAtMs - 100

test('no call fails when Redis stops or returns: each is admitted or refused by a limit', () => {
  expect(log.length).toBeGreaterThan(perSecond * 30)
  expect(log.filter(({ status }) => status !== 200 && status !== 429)).toEqual([])
})

test('limits can be read throughout', () => {
  const failed = reads.filter(({ status }) => status !== 200)
  expect(
    failed.map(({ process, status, atMs }) => ({
      process,
      status,
      afterStopMs: atMs - stoppedAtMs,
    })),
  ).toEqual([])
})

test('no scope admits more than its limit plus one call per process within any 60 seconds', () => {
  const results = loads.flatMap((load) =>
    mostByScope(load).map((each) => ({ ...each, load: load.name })),
  )
  expect(results.length).toBeGreaterThan(18)
  expect(results.filter(({ most, limit }) => most > limit + processes)).toEqual([])
})

test('while Redis is away calls are admitted, by each process up to its share', () => {
  const late = loads[2]!
  const away = admittedOf(late).filter((each) => phaseOf(each) === 'away')
  for (let process = 0; process < processes; process++) {
    const admitted = away.filter((each) => each.process === process)
    expect(admitted.length).toBeGreaterThan(10)
    expect(admitted.length).toBeLessThanOrEqual(Math.ceil(late.limits.organization / processes))
  }
})

test('each process reports that it counts locally while Redis is away', () => {
  const away = gauges.filter(isAway)
  expect(new Set(away.map(({ process }) => process)).size).toBe(processes)
  expect(away.filter(({ isLocal }) => !isLocal)).toEqual([])
  expect(reads.filter(isAway).filter(({ isExact }) => isExact === true)).toEqual([])
})

test(`each process counts in Redis again within ${backProbes} probes of its return`, () => {
  for (let process = 0; process < processes; process++) {
    const isAfterReturn = (each: Sample) => each.process === process && each.atMs > returnedAtMs
    const firstReports = [
      gauges.filter(isAfterReturn).find(({ isLocal }) => !isLocal),
      reads.filter(isAfterReturn).find(({ isExact }) => isExact === true),
    ]
    const afterMs = firstReports.map((first) => (first?.atMs ?? Infinity) - returnedAtMs)
    console.log(
      `process ${process} counts in Redis again after ${afterMs.join(' and ')} ms; a probe takes ${Math.round(probeMs.back)} ms`,
    )
    expect(Math.max(...afterMs)).toBeLessThanOrEqual(backProbes * probeMs.back)
  }
})

test('when all calls have ended no slot is held', () => {
  expect(slotsLeft).toEqual(loads.map(() => 0))
})
