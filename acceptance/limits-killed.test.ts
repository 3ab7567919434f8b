import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { createProject } from '@gatehouse/contract/project'
import { type ApiProcess, stopProcess } from '@gatehouse/tools/service-process'
import { createOrganization, type Stack, startStack } from '@gatehouse/tools/start-stack'
import { type ThrowawayRedis, startThrowawayRedis } from '@gatehouse/tools/throwaway-redis'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

// Processes are killed repeatedly while an organization sends five times what its limits allow. Every limit is
// enforced, and the slots of killed processes become free when their leases expire. This is computed from the answers
// and the published limits alone; no code is shared with the service.

const processes = 3
const kills = 20
const killEveryMs = 3400
const lastsMs = 72_000
const windowMs = 60_000
const leaseMs = 60_000
/** A timer may fire this much early, so a call was certainly in flight only until then. */
const timerMs = 2

type Scope = 'organization' | 'project' | 'key'
const limits: Record<Scope, { perMinute: number; slots: number }> = {
  organization: { perMinute: 120, slots: 8 },
  project: { perMinute: 90, slots: 6 },
  key: { perMinute: 60, slots: 4 },
}

type ScopeIds = Record<Scope, string>
type Caller = ScopeIds & { credential: string }
type Call = ScopeIds & {
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

let redis: ThrowawayRedis
let stack: Stack
let running: ApiProcess[]
const log: Call[] = []
let killed = 0
/** Connections may break from each kill until its process has been replaced. */
const outages: { fromMs: number; untilMs: number }[] = []
const orphansSeen: number[] = []
/** Calls of another organization, held by the first process that is killed. */
const heldByFirst = 3
let bystander: { id: string; key: string }
let leasesOfFirst: { endsAtMs: number[]; killedAtMs: number }
let bystanderStatuses: number[]
/** The leases that are left after the last kill. */
let leasesOfLast: { endsAtMs: number[]; killedAtMs: number }

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))

beforeAll(async () => {
  console.log(`limits with killed processes: seed ${seed}`)
  redis = await startThrowawayRedis()
  stack = await startStack({
    models: null,
    processes,
    redis: redis.url,
    program: 'limited-main',
    hasLimits: true,
    // A slow reply of Redis on a busy machine must not make a process count locally.
    environment: { REDIS_DEADLINE_MS: '1000' },
  })
  running = [...stack.apis]
  const callers = await makeCallers()
  bystander = await createBystander()
  const startedAtMs = Date.now()
  await Promise.all([hammer(callers, startedAtMs), killRepeatedly(startedAtMs)])
  leasesOfLast.endsAtMs = await readLeaseEnds()
  await sleep(leasesOfFirst.killedAtMs + leaseMs + timerMs - Date.now())
  bystanderStatuses = await useAllSlotsOfKey(bystander.key)
  report()
}, 600_000)
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
 * Chooses the keys that send the ten calls of a second. At the start and the end all keys call at once, with more calls
 * than slots. In between, one key calls until its minute is full, then the other key of its project until the project's
 * is full, then the other project, so that each scope refuses calls at some time.
 */
function planOf(second: number, [busy, calm, other]: Callers) {
  // Where starting processes takes long, filling the minute of the project takes longer, too.
  if (second < 2 || (second > 55 && isFull('project'))) {
    return { spreadMs: 0, callers: [busy, calm, other, busy, calm, busy, other, calm, busy, other] }
  }
  const filling = !isFull('API key') ? busy : !isFull('project') ? calm : other
  const callers = Array.from({ length: 10 }, (_, index) => (index % 5 === 4 ? busy : filling))
  return { spreadMs: 60, callers }
}

/** Whether calls were refused because the minute of this scope was full. */
const isFull = (where: string) => refusals().has(`requests per minute on ${where}`)
const areAllFull = () => ['organization', 'project', 'API key'].every(isFull)

/** Ten calls a second: 600 a minute, 5 times the organization's limit. */
async function hammer(callers: Callers, startedAtMs: number) {
  const calls: Promise<void>[] = []
  const isOver = () => {
    const afterMs = Date.now() - startedAtMs
    return killed === kills && afterMs > (areAllFull() ? lastsMs : 2 * lastsMs)
  }
  for (let second = 0; !isOver(); second++) {
    const plan = planOf(second, callers)
    for (const [index, caller] of plan.callers.entries()) {
      const later = sleep(index * plan.spreadMs)
      calls.push(later.then(() => callUntilAnswered(caller, second + index)))
    }
    await sleep(startedAtMs + (second + 1) * 1000 - Date.now())
  }
  await Promise.all(calls)
}

/** Like a client behind a load balancer: a call that cannot connect goes to the next process. */
async function callUntilAnswered(caller: Caller, first: number) {
  for (let index = first; ; index++) {
    const call = await callOnce(caller, running[index % processes]!.baseUrl)
    log.push(call)
    if (call.status !== 0) return
    await sleep(10)
  }
}

async function callOnce({ credential, ...ids }: Caller, baseUrl: string): Promise<Call> {
  const holdMs = 20 + random(181)
  const sentAtMs = Date.now()
  const call = { ...ids, sentAtMs, holdMs, status: 0, admittedAtMs: 0, message: '' }
  try {
    const response = await fetch(`${baseUrl}/v1/chat/completions/limited`, {
      method: 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      body: JSON.stringify({ tokens: 10, used: 5, holdMs }),
    })
    const answer = (await response.json()) as Answer
    return {
      ...call,
      status: response.status,
      answeredAtMs: Date.now(),
      admittedAtMs: answer.admitted_at_ms ?? 0,
      message: answer.error?.message ?? '',
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return { ...call, answeredAtMs: Date.now() }
  }
}

/**
 * The millisecond of its second at which a process is killed. The first and the last kills happen while all slots are
 * taken. Until the minute is full, kills happen while few are taken: if killed processes held all slots, nothing more
 * would be admitted. The others happen at any time.
 */
function momentOf(kill: number): number {
  if (kill === 0 || kill >= kills - 2) return 60
  return kill < 9 ? 750 + random(150) : random(900)
}

async function killRepeatedly(startedAtMs: number) {
  for (let kill = 0; kill < kills; kill++) {
    const second = Math.round(1 + (kill * killEveryMs) / 1000)
    const dueAtMs = startedAtMs + second * 1000 + momentOf(kill)
    const victim = random(processes)
    if (kill === 0) await holdSlots(running[victim]!.baseUrl)
    await sleep(dueAtMs - Date.now())
    const outage = { fromMs: Date.now(), untilMs: Infinity }
    outages.push(outage)
    await stopProcess(running[victim]!.child, 'SIGKILL')
    const killedAtMs = Date.now()
    killed++
    if (kill === 0) leasesOfFirst = { killedAtMs, endsAtMs: await readLeaseEnds(bystander.id) }
    leasesOfLast = { killedAtMs, endsAtMs: [] }
    await Promise.all([
      stack.startApi(`again-${killed}`).then((started) => {
        running[victim] = started
        outage.untilMs = Date.now()
      }),
      recordOrphans(startedAtMs),
    ])
  }
}

const sendHeld = (baseUrl: string, credential: string, holdMs: number) =>
  fetch(`${baseUrl}/v1/chat/completions/limited`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ tokens: 0, holdMs }),
  })

/** Calls of an organization that sends nothing else, held by one process until it is killed. */
async function holdSlots(baseUrl: string) {
  for (let index = 0; index < heldByFirst; index++) {
    void sendHeld(baseUrl, bystander.key, 2 * leaseMs).catch(() => undefined)
  }
  await vi.waitUntil(async () => (await readLeaseEnds(bystander.id)).length === heldByFirst, 30_000)
}

/** As many calls at once as a key has slots, over all processes. */
async function useAllSlotsOfKey(key: string): Promise<number[]> {
  const calls = Array.from({ length: limits.key.slots }, (_, index) =>
    sendHeld(running[index % processes]!.baseUrl, key, 3000),
  )
  return (await Promise.all(calls)).map(({ status }) => status)
}

async function createBystander() {
  const {
    organization_id: id,
    admin_key,
    project_id,
  } = await createOrganization(stack.service, 'Bystander')
  const client = createClient({ baseUrl: running[0]!.baseUrl, credential: admin_key })
  const sent = { params: { project_id }, body: { name: 'Held' } }
  return { id, key: (await client.call(createProjectApiKey, sent)).value }
}

/** At the end of a second every slot that is still held belongs to a killed process. */
async function recordOrphans(startedAtMs: number) {
  await sleep(950 - ((Date.now() - startedAtMs) % 1000))
  orphansSeen.push((await readLeaseEnds()).length)
}

/** The expiry times of an organization's leases in Redis, without those that have expired. */
async function readLeaseEnds(organizationId = stack.description.organization_id) {
  const leases = `${stack.database.name}:rl:{${organizationId}}:l`
  const lines = await redis.command(
    'ZRANGE',
    leases,
    String(Date.now()),
    '+inf',
    'BYSCORE',
    'WITHSCORES',
  )
  return lines
    .split('\n')
    .filter((_, index) => index % 2 === 1)
    .map(Number)
}

const admitted = () => log.filter(({ status }) => status === 200)

/** Applies `measure` to the admitted calls of every organization, project and key. */
const measureScopes = <T>(measure: (calls: Call[], scope: Scope) => T) =>
  (['organization', 'project', 'key'] as const).flatMap((scope) =>
    [...Map.groupBy(admitted(), (call) => call[scope]).values()].map((calls) => ({
      scope,
      found: measure(calls, scope),
    })),
  )

/** The highest number of calls admitted within any 60 seconds, by the clock of Redis. */
function mostInAnyMinute(calls: readonly Call[]): number {
  const times = calls.map(({ admittedAtMs }) => admittedAtMs).toSorted((a, b) => a - b)
  let [first, most] = [0, 0]
  for (const [last, atMs] of times.entries()) {
    while (times[first]! <= atMs - windowMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

/** The highest number of calls certainly in flight at once: each from its admission for as long as it was held. */
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

/** The limits that refused calls, like `requests per minute on project`. */
const refusals = () =>
  new Set(log.flatMap(({ message }) => /reached for (.+): limit/.exec(message)?.[1] ?? []))

function report() {
  const count = (status: number) => log.filter((call) => call.status === status).length
  const figures = (of: (calls: readonly Call[]) => number) =>
    measureScopes(of)
      .map(({ scope, found }) => `${scope} ${found}`)
      .join(', ')
  console.log(
    `${log.length} calls, ${killed} kills: ${count(200)} admitted, ${count(429)} refused, ${count(0)} broken`,
  )
  console.log(`refused by: ${[...refusals()].join(', ')}`)
  console.log(`most in any 60 s: ${figures(mostInAnyMinute)}`)
  console.log(`most at once: ${figures(mostAtOnce)}`)
  console.log(
    `slots held by killed processes after each kill: ${orphansSeen.join(' ')}; ` +
      `statuses of the bystander after the lease: ${bystanderStatuses.join(' ')}`,
  )
}

test('only connections to a killed process break; every other call is admitted or refused', () => {
  expect(killed).toBe(kills)
  // 503: a process that is busy starting, or with the calls of the killed one, has too much to do.
  expect(log.filter(({ status }) => ![0, 200, 429, 503].includes(status))).toEqual([])
  const broken = log.filter(({ status }) => status === 0)
  const isExplained = ({ sentAtMs, answeredAtMs }: Call) =>
    outages.some(({ fromMs, untilMs }) => answeredAtMs >= fromMs && sentAtMs <= untilMs)
  expect(broken.filter((call) => !isExplained(call))).toEqual([])
})

test('no scope admitted more calls than its limit within any 60 seconds', () => {
  const results = measureScopes(mostInAnyMinute)
  expect(results).toHaveLength(6)
  for (const { scope, found } of results) {
    expect(found, scope).toBeLessThanOrEqual(limits[scope].perMinute)
  }
  // The load was large enough to exceed every limit.
  expect(results[0]!.found).toBeGreaterThan(limits.organization.perMinute * 0.8)
  expect(areAllFull(), [...refusals()].join()).toBe(true)
})

test('no scope ever had more calls in flight than slots', () => {
  for (const { scope, found } of measureScopes(mostAtOnce)) {
    expect(found, scope).toBeLessThanOrEqual(limits[scope].slots)
  }
  expect([...refusals()].join()).toContain('concurrent requests on')
  const isConsistent = ({ admittedAtMs, holdMs, sentAtMs, answeredAtMs }: Call) =>
    admittedAtMs >= sentAtMs - timerMs && admittedAtMs + holdMs <= answeredAtMs + timerMs
  expect(admitted().filter((call) => !isConsistent(call))).toEqual([])
})

test('slots of killed processes are free again when their leases expire', () => {
  expect(orphansSeen).toHaveLength(kills)
  const endTooLate = ({ endsAtMs, killedAtMs }: typeof leasesOfFirst) =>
    endsAtMs.filter((atMs) => atMs > killedAtMs + leaseMs + timerMs)
  expect(leasesOfFirst.endsAtMs).toHaveLength(heldByFirst)
  expect(endTooLate(leasesOfFirst)).toEqual([])
  expect(endTooLate(leasesOfLast)).toEqual([])
  // The leases of the first kill have expired: all slots of that key can be used at once again.
  expect(bystanderStatuses).toEqual(Array.from({ length: limits.key.slots }, () => 200))
})
