import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { createProject } from '@gatehouse/contract/project'
import { type ApiProcess, stopProcess, untilReady } from '@gatehouse/tools/service-process'
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
/** By then every lease has expired, and so has the minute that it kept calls from filling. */
const filledMaxMs = 3 * leaseMs
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
  /** The connection was open before it broke, so the call may have been admitted. */
  isLost: boolean
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
/** By the address of a process, how many of its calls have no answer yet. */
const unanswered = new Map<string, number>()
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
    environment: { REDIS_DEADLINE_MS: '5000' },
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

/** Mulberry32: the same seed kills the same processes. */
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
 * Chooses the keys that send the ten calls of a second. At the start, until slots have run out, and at the end all keys call at
 * once, with more calls than slots. In between, one key calls until its minute is full, then the other key of its project
 * until the project's is full, then the other project, so that each scope refuses calls at some time.
 */
function planOf(second: number, [busy, calm, other]: Callers) {
  // Where starting processes takes long, filling the minute of the project takes longer, too.
  if (second < 2 || !haveSlotsRunOut() || (second > 55 && isFull('project'))) {
    const callers = [busy, calm, other, busy, calm, busy, other, calm, busy, other]
    // Long enough for a slow machine to admit others meanwhile.
    return { spreadMs: 0, holdMinMs: 400, callers }
  }
  const filling = !isFull('API key') ? busy : !isFull('project') ? calm : other
  const callers = Array.from({ length: 10 }, (_, index) => (index % 5 === 4 ? busy : filling))
  return { spreadMs: 60, holdMinMs: 20, callers }
}

/** Whether calls were refused because the minute of this scope was full. */
const isFull = (where: string) => refusals().has(`requests per minute on ${where}`)
const areAllFull = () => ['organization', 'project', 'API key'].every(isFull)
const haveSlotsRunOut = () => [...refusals()].join().includes('concurrent requests on')

/** Ten calls a second: 600 a minute, 5 times the organization's limit. */
async function hammer(callers: Callers, startedAtMs: number) {
  const calls: Promise<void>[] = []
  const isOver = () => {
    if (killed < kills || Date.now() - startedAtMs < lastsMs) return false
    return areAllFull() || Date.now() - leasesOfLast.killedAtMs > filledMaxMs
  }
  for (let second = 0; !isOver(); second++) {
    const { callers: chosen, spreadMs, holdMinMs } = planOf(second, callers)
    for (const [index, caller] of chosen.entries()) {
      const holdMs = holdMinMs + random(181)
      const later = sleep(index * spreadMs)
      calls.push(later.then(() => callUntilAnswered(caller, second + index, holdMs)))
    }
    await sleep(startedAtMs + (second + 1) * 1000 - Date.now())
  }
  await Promise.all(calls)
}

/** Like a client behind a load balancer: a call that cannot connect goes to the next process. */
async function callUntilAnswered(caller: Caller, first: number, holdMs: number) {
  for (let index = first; ; index++) {
    const { baseUrl } = running[index % processes]!
    const count = (by: number) => unanswered.set(baseUrl, (unanswered.get(baseUrl) ?? 0) + by)
    count(1)
    const call = await callOnce(caller, baseUrl, holdMs)
    count(-1)
    log.push(call)
    if (call.status !== 0) return
    await sleep(10)
  }
}

async function callOnce(
  { credential, ...ids }: Caller,
  baseUrl: string,
  holdMs: number,
): Promise<Call> {
  const sentAtMs = Date.now()
  const call = { ...ids, sentAtMs, holdMs, status: 0, isLost: false, admittedAtMs: 0, message: '' }
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
    const { code } = Object(error.cause) as { code?: string }
    return { ...call, isLost: code !== 'ECONNREFUSED', answeredAtMs: Date.now() }
  }
}

/**
 * Waits for the moment to kill a process. The first and the last kills happen while all slots are taken. Until the minute is
 * full, the process serves no call then: if killed processes held all slots, nothing more would be admitted. The others
 * happen at any time.
 */
async function untilMoment(kill: number, { baseUrl }: ApiProcess) {
  const isServing = () => (unanswered.get(baseUrl) ?? 0) > 0
  if (kill === 0 || kill >= kills - 2) {
    await vi.waitUntil(isServing, { timeout: 60_000, interval: 5 })
    await sleep(60) // until it has admitted some of the calls
  } else if (kill < 9) {
    const isIdle = () => !isServing()
    // A slow machine may never be idle: slots of killed processes then stay taken until their leases expire.
    await vi.waitUntil(isIdle, { timeout: killEveryMs, interval: 5 }).catch(() => undefined)
  } else await sleep(random(900))
}

async function killRepeatedly(startedAtMs: number) {
  for (let kill = 0; kill < kills; kill++) {
    const victim = random(processes)
    if (kill === 0) await holdSlots(running[victim]!.baseUrl)
    await sleep(startedAtMs + 1000 + kill * killEveryMs - Date.now())
    await untilMoment(kill, running[victim]!)
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
  await vi.waitUntil(async () => (await readLeaseEnds(bystander.id)).length === heldByFirst, 60_000)
}

/** As many calls at once as a key has slots, over all processes. */
async function useAllSlotsOfKey(key: string): Promise<number[]> {
  await Promise.all(running.map((each) => untilReady(each)))
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

/** At the end of a second the slots that are still held belong to killed processes. */
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

/** Also the calls whose answers were lost with their processes. */
const maybeAdmitted = () => [
  ...admitted(),
  ...log.filter(({ isLost }) => isLost).map((call) => ({ ...call, admittedAtMs: call.sentAtMs })),
]

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
  expect(mostInAnyMinute(maybeAdmitted())).toBeGreaterThan(limits.organization.perMinute * 0.8)
  expect(areAllFull(), [...refusals()].join()).toBe(true)
})

test('no scope ever had more calls in flight than slots', () => {
  for (const { scope, found } of measureScopes(mostAtOnce)) {
    expect(found, scope).toBeLessThanOrEqual(limits[scope].slots)
  }
  expect(haveSlotsRunOut(), [...refusals()].join()).toBe(true)
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
