import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { createProject } from '@gatehouse/contract/project'
import { type ApiProcess, stopProcess } from '@gatehouse/tools/service-process'
import { createOrganization, type Stack, startStack } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { type OwnRedis, startOwnRedis } from './support/own-redis.ts'

// Processes are killed again and again while an organization sends five times what it may. Whoever reads
// the callers' log afterwards finds every limit kept, and the slots of the dead come back by themselves.
// The reader shares nothing with the service: it knows the published numbers and what callers were told.

const processes = 3
const kills = 20
const killEveryMs = 3400
const lastsMs = 72_000
const windowMs = 60_000
const leaseMs = 60_000
const graceMs = 5000
/** A timer may fire this much early: until then a call was in flight for certain. */
const timerMs = 2

type Scope = 'organization' | 'project' | 'key'
const limits: Record<Scope, { perMinute: number; slots: number }> = {
  organization: { perMinute: 120, slots: 8 },
  project: { perMinute: 90, slots: 6 },
  key: { perMinute: 60, slots: 4 },
}

type Place = Record<Scope, string>
type Caller = Place & { credential: string }
type Call = Place & {
  sentAtMs: number
  answeredAtMs: number
  /** 0: the connection broke. */
  status: number
  holdMs: number
  admittedAtMs: number
  message: string
}
type Answer = { admitted_at_ms?: number; error?: { message: string } }

const seed = Number(process.env['LIMITS_SEED'] ?? Date.now() % 2 ** 31)
const random = createRandom(seed)

let redis: OwnRedis
let stack: Stack
let running: ApiProcess[]
const log: Call[] = []
let killed = 0
/** Processes that are dead or dying: their connections may break. */
const brokenFromMs: number[] = []
const orphansSeen: number[] = []
/** What the last victim held for certain, and what was left of it after its death. */
const orphansMade = 3
let orphansOfLast: number
let bystanderId: string
let lastKillAtMs: number
let slotsGoneAtMs: number

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))

beforeAll(async () => {
  console.log(`limits with killed processes: seed ${seed}`)
  redis = await startOwnRedis()
  stack = await startStack({
    models: null,
    ...{ processes, redis: redis.url, entry: 'testing/limited-main.ts', hasLimits: true },
  })
  running = [...stack.apis]
  const callers = await makeCallers()
  const startedAtMs = Date.now()
  await Promise.all([hammer(callers, startedAtMs), killAgainAndAgain(startedAtMs)])
  slotsGoneAtMs = await untilNoSlotIsHeld()
  report()
}, 240_000)
afterAll(async () => {
  await stack.stop()
  await redis.stop()
})

/** Mulberry32: the same seed kills the same processes at the same moments. */
function createRandom(start: number) {
  let state = start
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** Two keys of one project, and one of another. */
async function makeCallers() {
  const { base_url: baseUrl, admin_key, organization_id, project_id } = stack.description
  const client = createClient({ baseUrl, credential: admin_key })
  const second = await client.call(createProject, { body: { name: 'Second' } })
  const makeKey = async (project: string) => {
    const sent = { params: { project_id: project }, body: { name: 'Hammered' } }
    const { id, value } = await client.call(createProjectApiKey, sent)
    return { organization: organization_id, project, key: id, credential: value }
  }
  return [await makeKey(project_id), await makeKey(project_id), await makeKey(second.id)] as const
}

type Callers = Awaited<ReturnType<typeof makeCallers>>

/**
 * Whose calls fill a second. First, and when the first minute is over, all at once: more than there are
 * slots. Between that one after the other, by one key until its minute is full, then by the other key of
 * its project until the project's is, then by the other project: so that every scope is what refuses once.
 */
function planOf(second: number, [busy, calm, other]: Callers) {
  if (second < 2 || second > 55) {
    return { spreadMs: 0, callers: [busy, calm, other, busy, calm, busy, other, calm, busy, other] }
  }
  const isFull = (where: string) => refusals().has(`requests per minute on ${where}`)
  const filling = !isFull('API key') ? busy : !isFull('project') ? calm : other
  const callers = Array.from({ length: 10 }, (_, index) => (index % 5 === 4 ? busy : filling))
  return { spreadMs: 60, callers }
}

/** Ten calls a second: 600 a minute, 5 times the organization's limit. */
async function hammer(callers: Callers, startedAtMs: number) {
  const calls: Promise<void>[] = []
  for (let second = 0; Date.now() < startedAtMs + lastsMs || killed < kills; second++) {
    const plan = planOf(second, callers)
    for (const [index, caller] of plan.callers.entries()) {
      const later = sleep(index * plan.spreadMs)
      calls.push(later.then(() => callUntilAnswered(caller, second + index)))
    }
    await sleep(startedAtMs + (second + 1) * 1000 - Date.now())
  }
  await Promise.all(calls)
}

/** As a client behind a load balancer: what cannot be reached is asked elsewhere. */
async function callUntilAnswered(caller: Caller, first: number) {
  for (let index = first; ; index++) {
    const call = await callOnce(caller, running[index % processes]!.baseUrl)
    log.push(call)
    if (call.status !== 0) return
    await sleep(10)
  }
}

async function callOnce({ credential, ...place }: Caller, baseUrl: string): Promise<Call> {
  const holdMs = 20 + random(181)
  const sentAtMs = Date.now()
  const call = { ...place, sentAtMs, holdMs, status: 0, admittedAtMs: 0, message: '' }
  try {
    const response = await fetch(`${baseUrl}/v1/chat/completions/limited`, {
      method: 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      body: JSON.stringify({ tokens: 10, used: 5, holdMs }),
    })
    const answer = (await response.json()) as Answer
    return {
      ...{ ...call, status: response.status, answeredAtMs: Date.now() },
      ...{ admittedAtMs: answer.admitted_at_ms ?? 0, message: answer.error?.message ?? '' },
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return { ...call, answeredAtMs: Date.now() }
  }
}

/**
 * The first and the last die while all slots are taken, the others at any moment; but until the minute is
 * full when few are: with all slots orphaned nothing more would be let in, and nothing tested.
 */
function momentOf(kill: number): number {
  if (kill === 0 || kill >= kills - 2) return 60
  return kill < 9 ? 750 + random(150) : random(900)
}

async function killAgainAndAgain(startedAtMs: number) {
  for (let kill = 0; kill < kills; kill++) {
    const second = Math.round(1 + (kill * killEveryMs) / 1000)
    const dueAtMs = startedAtMs + second * 1000 + momentOf(kill)
    await sleep(dueAtMs - Date.now())
    const victim = random(processes)
    const bystander = kill === kills - 1 ? await holdSlots(running[victim]!.baseUrl) : undefined
    lastKillAtMs = Date.now()
    brokenFromMs.push(lastKillAtMs)
    await stopProcess(running[victim]!.child, 'SIGKILL')
    killed++
    await Promise.all([
      stack.startApi(`again-${killed}`).then((started) => (running[victim] = started)),
      noteOrphans(startedAtMs),
    ])
    if (bystander) orphansOfLast = await countSlots(bystander)
  }
}

/** Calls of an organization that nobody hammers, held by one process until it dies. */
async function holdSlots(baseUrl: string): Promise<string> {
  const credential = await createBystander()
  const call = { tokens: 0, holdMs: 2 * leaseMs }
  for (let index = 0; index < orphansMade; index++) {
    void fetch(`${baseUrl}/v1/chat/completions/limited`, {
      method: 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      body: JSON.stringify(call),
    }).catch(() => undefined)
  }
  await vi.waitUntil(async () => (await countSlots(bystanderId)) === orphansMade, 5000)
  return bystanderId
}

async function createBystander(): Promise<string> {
  const made = await createOrganization(stack.service, 'Bystander')
  bystanderId = made.organization_id
  const client = createClient({
    baseUrl: running[0]!.baseUrl,
    credential: made.admin_key,
  })
  const sent = { params: { project_id: made.project_id }, body: { name: 'Held' } }
  return (await client.call(createProjectApiKey, sent)).value
}

/** At the end of a second every slot that is still held is one of a dead process. */
async function noteOrphans(startedAtMs: number) {
  await sleep(950 - ((Date.now() - startedAtMs) % 1000))
  orphansSeen.push(await countSlots())
}

async function countSlots(organizationId = stack.description.organization_id): Promise<number> {
  const leases = `${stack.database.name}:rl:{${organizationId}}:l`
  return Number(await redis.ask('ZCOUNT', leases, String(Date.now()), '+inf'))
}

async function untilNoSlotIsHeld(): Promise<number> {
  while (Date.now() < lastKillAtMs + leaseMs + 2 * graceMs) {
    const held = [await countSlots(), await countSlots(bystanderId)]
    if (held.every((count) => count === 0)) return Date.now()
    await sleep(250)
  }
  return Infinity
}

const admitted = () => log.filter(({ status }) => status === 200)

/** What callers saw in each place, for every place of the three scopes. */
const eachPlace = <T>(look: (calls: Call[], scope: Scope) => T) =>
  (['organization', 'project', 'key'] as const).flatMap((scope) =>
    [...Map.groupBy(admitted(), (call) => call[scope]).values()].map((calls) => ({
      ...{ scope, found: look(calls, scope) },
    })),
  )

/** The most that were let in within any 60 seconds, by the clock of Redis. */
function mostInAnyMinute(calls: readonly Call[]): number {
  const times = calls.map(({ admittedAtMs }) => admittedAtMs).toSorted((a, b) => a - b)
  let [first, most] = [0, 0]
  for (const [last, atMs] of times.entries()) {
    while (times[first]! <= atMs - windowMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

/** The most that were in flight at one moment for certain: each for as long as it was held on purpose. */
function mostAtOnce(calls: readonly Call[]): number {
  const steps = calls.flatMap(({ admittedAtMs, holdMs }) => [
    { atMs: admittedAtMs, by: 1 },
    { atMs: admittedAtMs + holdMs - timerMs, by: -1 },
  ])
  let [now, most] = [0, 0]
  for (const { by } of steps.toSorted((a, b) => a.atMs - b.atMs || a.by - b.by)) {
    now += by
    most = Math.max(most, now)
  }
  return most
}

/** Which limits refused: `requests per minute on project`. */
const refusals = () =>
  new Set(log.flatMap(({ message }) => /reached for (.+): limit/.exec(message)?.[1] ?? []))

function report() {
  const count = (status: number) => log.filter((call) => call.status === status).length
  const figures = (of: (calls: readonly Call[]) => number) =>
    eachPlace(of)
      .map(({ scope, found }) => `${scope} ${found}`)
      .join(', ')
  console.log(
    `${log.length} calls, ${killed} kills: ${count(200)} let in, ${count(429)} refused, ${count(0)} broken off`,
  )
  console.log(`refused by: ${[...refusals()].join(', ')}`)
  console.log(`most in any 60 s: ${figures(mostInAnyMinute)}`)
  console.log(`most at once: ${figures(mostAtOnce)}`)
  console.log(
    `orphaned slots seen after each kill: ${orphansSeen.join(' ')}; ` +
      `all gone ${slotsGoneAtMs - lastKillAtMs} ms after the last kill`,
  )
}

test('only connections to a killed process break; every other call is let in or refused', () => {
  expect(killed).toBe(kills)
  expect(log.filter(({ status }) => ![0, 200, 429].includes(status))).toEqual([])
  const broken = log.filter(({ status }) => status === 0)
  const isExplained = ({ answeredAtMs }: Call) =>
    brokenFromMs.some((atMs) => answeredAtMs >= atMs && answeredAtMs < atMs + 10_000)
  expect(broken.filter((call) => !isExplained(call))).toEqual([])
})

test('in no 60 seconds callers were let in more often than the limit, in any scope', () => {
  const places = eachPlace(mostInAnyMinute)
  expect(places).toHaveLength(6)
  for (const { scope, found } of places) {
    expect(found, scope).toBeLessThanOrEqual(limits[scope].perMinute)
  }
  // The load was large enough to break every limit.
  expect(places[0]!.found).toBeGreaterThan(limits.organization.perMinute * 0.8)
  for (const where of ['organization', 'project', 'API key']) {
    expect(refusals(), where).toContain(`requests per minute on ${where}`)
  }
})

test('never were more calls in flight than there are slots, in any scope', () => {
  for (const { scope, found } of eachPlace(mostAtOnce)) {
    expect(found, scope).toBeLessThanOrEqual(limits[scope].slots)
  }
  expect([...refusals()].join()).toContain('concurrent requests on')
  const isConsistent = ({ admittedAtMs, holdMs, sentAtMs, answeredAtMs }: Call) =>
    admittedAtMs >= sentAtMs - timerMs && admittedAtMs + holdMs <= answeredAtMs + timerMs
  expect(admitted().filter((call) => !isConsistent(call))).toEqual([])
})

test('slots of killed processes are free again when their lease is over', () => {
  expect(orphansSeen).toHaveLength(kills)
  expect(orphansOfLast).toBe(orphansMade)
  expect(slotsGoneAtMs - lastKillAtMs).toBeLessThanOrEqual(leaseMs + graceMs)
})
