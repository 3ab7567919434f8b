import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import type { Answered } from '@gatehouse/tools/scripted-upstream/call'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { type ApiProcess, stopProcess } from '@gatehouse/tools/service-process'
import {
  createOrganization,
  createTenants,
  runOperator,
  type Stack,
  startStack,
} from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Books, countHolds, readBooks, watchBalances } from './support/credit-books.ts'
import {
  createPlanner,
  createRandom,
  crashModels,
  type Organization,
} from './support/credit-calls.ts'
import {
  billsOf,
  checkNames,
  compareLogs,
  type Findings,
  type Granted,
} from './support/credit-comparison.ts'
import { runLoad, type ToldCall } from './support/credit-load.ts'
import { type OwnPostgres, startOwnPostgres } from './support/own-postgres.ts'

// Processes are killed and PostgreSQL crashes, again and again, while calls are held, served and settled.
// Afterwards three logs must agree: what clients were told, what the upstream served, what the ledger says.
// CREDIT_CRASH_SECONDS makes it longer, CREDIT_CRASH_SEED plans the same calls again.

const seconds = Number(process.env['CREDIT_CRASH_SECONDS'] ?? 60)
const seed = Number(process.env['CREDIT_CRASH_SEED'] ?? Date.now() % 2 ** 31)
const random = createRandom(seed)

const kills = Math.max(20, Math.round(seconds / 2.8))
const lanes = 32
const rich = 16
const poor = 3
/** More than an organization can use up, however slow the machine is: each of its calls needs another one. */
const models = Math.min(10_000, seconds * 50)
const graceSeconds = 5
/** How long PostgreSQL stays away: long enough that calls end while it does. */
const awayMs = 1500
/** After this time a process that was started has calls under way again. */
const underWayAgainMs = 3000
const grantUsd = 0.02
const grantEveryMs = 7000
const settledMaxMs = 45_000

let postgres: OwnPostgres
let upstream: { url: string; stop: () => Promise<void> }
let stack: Stack
let organizations: Organization[]
let watching: ReturnType<typeof watchBalances>
const served: Answered[] = []
const granted: Granted[] = []
let told: ToldCall[] = []
/** Undefined while it is dead. */
let running: (ApiProcess | undefined)[]
let worker: ApiProcess
let watched: { looks: number; found: object[] }
let books: Books
let findings: Findings
const done = { kills: 0, workerKills: 0, crashes: 0, deaths: 0, filesLeft: 0, slowestRestartMs: 0 }
const secondsAt = { loaded: 0, over: 0, settled: 0 }
const secondsNow = () => Math.round(performance.now() / 1000)

beforeAll(
  async () => {
    console.log(`credits with killed processes: seed ${seed}`)
    await startEverything()
    await loadAndKill()
    secondsAt.over = secondsNow()
    await settleEverything()
    secondsAt.settled = secondsNow()
    watched = await watching.stop()
    books = await readBooks(stack.database.url)
    findings = compareLogs({ told, served, books, granted })
    report()
  },
  (seconds + 300) * 1000,
)

afterAll(async () => {
  await stack?.stop()
  await upstream?.stop()
  await postgres?.stop()
})

async function startEverything() {
  postgres = await startOwnPostgres()
  upstream = await startScriptedUpstream({ onAnswered: (answered) => served.push(answered) })
  stack = await startStack({
    ...{ server: postgres.url, models: () => crashModels(upstream.url, models) },
    environment: { CREDIT_HOLD_GRACE_SECONDS: String(graceSeconds) },
  })
  worker = stack.worker
  running = [stack.apis[0], await startPlace(1)]
  organizations = await makeOrganizations()
  watching = watchBalances(stack.database.url)
  secondsAt.loaded = secondsNow()
}

async function loadAndKill() {
  let isOver = false
  const load = runLoad({
    plan: createPlanner(organizations, models, random),
    ...{ lanes, isOver: () => isOver },
    pickProcess: () => pickAlive()?.baseUrl,
  })
  const granting = grantUntil(() => isOver)
  try {
    await killAgainAndAgain()
    await loseBothInAnOutage()
  } finally {
    isOver = true
    told = await load
    await granting
  }
}

/** As behind a load balancer: the dead are not asked. */
function pickAlive() {
  const alive = running.filter((each) => each !== undefined)
  return alive[random(alive.length)]
}

/** The first shares its folder with the worker; the other is a machine of its own. */
const startPlace = (place: number) =>
  untilItWorks(() => {
    const own = { STATE_DIRECTORY: join(stack.folder, 'state-elsewhere') }
    return stack.startApi(`api-${place}-${done.kills}`, place === 0 ? {} : own)
  })

/** The rich have paid for the highest tier; the poor have a plan, and hardly anything to spend. */
async function makeOrganizations(): Promise<Organization[]> {
  const tenants = await createTenants(stack.service, rich)
  const made: Organization[] = tenants.map((tenant) => ({
    ...{ id: tenant.organization_id, key: tenant.project_key, isPoor: false },
  }))
  for (let index = 0; index < poor; index++) {
    const name = `Poor ${index}`
    const created = await createOrganization(stack.service, name, String(grantUsd))
    const { organization_id, project_id, admin_key } = created
    await runOperator(stack.service, ['plan', organization_id, '--plan', 'scale'])
    const client = createClient({ baseUrl: stack.description.base_url, credential: admin_key })
    const sent = { params: { project_id }, body: { name: 'Poor' } }
    const { value } = await client.call(createProjectApiKey, sent)
    made.push({ id: organization_id, key: value, isPoor: true })
  }
  return made
}

/** An operator who is not answered says the same again: a grant counts once. */
async function grantUntil(isOver: () => boolean) {
  const needy = organizations.filter(({ isPoor }) => isPoor)
  for (let number = 0; !isOver(); number++) {
    const { id: organizationId } = needy[number % needy.length]!
    const id = `grant-${number}`
    const command = ['grant', organizationId, '--id', id, '--usd', String(grantUsd)]
    await untilItWorks(() => runOperator(stack.service, command))
    granted.push({ organizationId, id, credits: Math.round(grantUsd * 1_000_000) })
    await sleep(grantEveryMs)
  }
}

/** What cannot start or cannot be done while PostgreSQL is away is tried again, as a supervisor does. */
async function untilItWorks<T>(work: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + 30_000; ;) {
    try {
      return await work()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await sleep(200)
    }
  }
}

async function killAgainAndAgain() {
  const startedAtMs = Date.now()
  const everyMs = (seconds * 1000) / kills
  const crashes = [Math.round(kills / 3), Math.round((2 * kills) / 3)]
  const workersDie = [Math.round(kills / 4), Math.round(kills / 2)]
  for (let kill = 0; kill < kills; kill++) {
    const dueAtMs = startedAtMs + kill * everyMs + random(everyMs)
    await sleep(Math.max(0, dueAtMs - Date.now()))
    const isCrash = crashes.includes(kill)
    await Promise.all([
      isCrash && crashPostgres(),
      workersDie.includes(kill) && killWorker(),
      // In a crash it has the time to write settlements down before it dies.
      sleep(isCrash ? awayMs / 2 : 0).then(() => killApi(random(running.length))),
    ])
  }
}

async function kill({ child }: ApiProcess) {
  if (child.exitCode !== null || child.signalCode !== null) done.deaths++
  await stopProcess(child, 'SIGKILL')
}

async function killApi(place: number) {
  const victim = running[place]!
  running[place] = undefined
  await kill(victim)
  done.kills++
  const killedAtMs = performance.now()
  running[place] = await startPlace(place)
  done.slowestRestartMs = Math.max(
    done.slowestRestartMs,
    Math.round(performance.now() - killedAtMs),
  )
}

async function killWorker() {
  await kill(worker)
  done.workerKills++
  worker = await untilItWorks(() => stack.startWorker(`worker-${done.workerKills}`))
}

async function crashPostgres() {
  await postgres.crash()
  done.crashes++
  await sleep(awayMs)
  await postgres.start()
}

/**
 * PostgreSQL crashes, and then both processes die with settlements that they could only write down. They come
 * back when all holds have been given up: what only they have is charged late.
 */
async function loseBothInAnOutage() {
  await sleep(underWayAgainMs)
  await postgres.crash()
  done.crashes++
  await sleep(2 * awayMs)
  const victims = running.filter((each) => each !== undefined)
  running = running.map(() => undefined)
  await Promise.all(victims.map(kill))
  done.kills += victims.length
  done.filesLeft = await countSettlementFiles()
  await postgres.start()
}

async function settleEverything() {
  await untilZero(() => countHolds(stack.database.url))
  running = await Promise.all(running.map((_, place) => startPlace(place)))
  await untilZero(countSettlementFiles)
}

/** Or until there is no hope: then the comparison says what is left. */
async function untilZero(count: () => Promise<number>) {
  for (const deadline = Date.now() + settledMaxMs; Date.now() < deadline;) {
    if ((await count()) === 0) return
    await sleep(250)
  }
}

async function countSettlementFiles(): Promise<number> {
  const names = await readdir(stack.folder, { recursive: true })
  return names.filter((name) => name.includes('settlements-')).length
}

const acknowledged = () => told.filter((call) => call.told)
const withStatus = (status: number) => told.filter((call) => call.status === status)
const ofKind = (kind: string) => books.ledger.filter((row) => row.kind === kind)

function report() {
  const whole = served.filter(({ isWhole }) => isWhole).length
  const statuses = Map.groupBy(told, ({ status, code }) => `${status} ${code ?? ''}`.trim())
  console.log({
    ...done,
    calls: told.length,
    answers: Object.fromEntries([...statuses].map(([status, calls]) => [status, calls.length])),
    hungUp: told.filter(({ hungUp }) => hungUp).length,
    ...{ served: served.length, servedWhole: whole, acknowledged: acknowledged().length },
    acknowledgedWithoutBalance: acknowledged().filter((call) => call.told?.remaining === null)
      .length,
    usage: ofKind('usage').length,
    void_unknown: ofKind('void_unknown').length,
    late_usage: ofKind('late_usage').length,
    writeoff: ofKind('writeoff').length,
    grants: granted.length,
    ...{ looksAtBalances: watched.looks, secondsAt },
  })
  const counts = Object.entries(findings).map(([check, found]) => [check, found.length])
  console.log(Object.fromEntries(counts))
}

test('processes were killed and PostgreSQL crashed while there was much to lose', () => {
  expect(done.kills).toBeGreaterThanOrEqual(20)
  expect(done.workerKills).toBeGreaterThanOrEqual(2)
  expect(done).toMatchObject({ crashes: 3, deaths: 0 })
  expect(acknowledged().length).toBeGreaterThan(300)
  expect(new Set(acknowledged().map(({ isStreamed }) => isStreamed)).size).toBe(2)
  expect(acknowledged().filter((call) => call.told?.remaining === null)).not.toEqual([])
  expect(withStatus(402)).not.toEqual([])
  expect(granted.length).toBeGreaterThan(poor)
  for (const kind of ['void_unknown', 'late_usage', 'writeoff']) {
    expect(ofKind(kind), kind).not.toEqual([])
  }
})

test('a call that could not be paid or held is refused with 402 or 503, and nothing else goes wrong', () => {
  // 0: broken off; 429: slots of the dead; 400: the upstream refuses on purpose.
  expect(told.filter(({ status }) => ![0, 200, 400, 402, 429, 503].includes(status))).toEqual([])
  expect(new Set(withStatus(402).map(({ code }) => code))).toEqual(
    new Set(['insufficient_credits']),
  )
})

test('the balance was never negative, and the accounts agreed with holds and ledger at every look', () => {
  expect(watched.looks).toBeGreaterThan(seconds)
  expect(watched.found).toEqual([])
})

test.each(checkNames)('nothing is wrong: %s', (check) => {
  expect(findings[check]).toEqual([])
})

test('a call that was given up had a process that died', () => {
  const given = billsOf(books.ledger).filter(({ unknown }) => unknown.length > 0)
  expect(given.length).toBeLessThanOrEqual((done.kills + done.crashes) * lanes)
})
