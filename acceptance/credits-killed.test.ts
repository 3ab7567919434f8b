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
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { type ThrowawayPostgres, startThrowawayPostgres } from '@gatehouse/tools/throwaway-postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Books, countHolds, readBooks, watchBalances } from './support/credits/books.ts'
import {
  createPlanner,
  createRandom,
  crashModels,
  type Organization,
} from './support/credits/calls.ts'
import {
  billsOf,
  checkNames,
  compareLogs,
  type Findings,
  type Granted,
} from './support/credits/comparison.ts'
import { type ClientCall, runLoad } from './support/credits/load.ts'

// Processes are killed and PostgreSQL crashes repeatedly while calls are held, served and settled. Afterwards three
// logs must agree: what clients received, what the upstream served, and what the ledger contains.
// CREDIT_CRASH_SECONDS makes it longer, CREDIT_CRASH_SEED plans the same calls again, and STACK_BILLING=metered serves those
// that cannot be paid.

const seconds = sizeOf({ usual: 60, long: 300, variable: 'CREDIT_CRASH_SECONDS' })
const seed = Number(process.env['CREDIT_CRASH_SEED'] ?? Date.now() % 2 ** 31)
const random = createRandom(seed)
const isMetered = process.env['STACK_BILLING'] === 'metered'

const kills = Math.max(20, Math.round(seconds / 2.8))
const clients = 32
const rich = 16
const poor = 3
/** More than an organization can use, however slow the machine is: each of its calls needs a new one. */
const models = Math.min(10_000, seconds * 50)
const graceSeconds = 5
/** How long PostgreSQL stays down: long enough that calls end meanwhile. */
const awayMs = 1500
/** After this time a restarted process has calls in flight again. */
const underWayAgainMs = 3000
const grantUsd = 0.02
const grantEveryMs = 7000
const settledMaxMs = 45_000

let postgres: ThrowawayPostgres
let upstream: { url: string; stop: () => Promise<void> }
let stack: Stack
let organizations: Organization[]
let watching: ReturnType<typeof watchBalances>
const served: Answered[] = []
const granted: Granted[] = []
let clientCalls: ClientCall[] = []
/** An entry is undefined while its process is dead. */
let running: (ApiProcess | undefined)[]
let worker: ApiProcess
let watched: { checks: number; found: object[] }
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
    findings = compareLogs({ clientCalls, served, books, granted, isMetered })
    report()
  },
  (3 * seconds + 300) * 1000,
)

afterAll(async () => {
  await stack?.stop()
  await upstream?.stop()
  await postgres?.stop()
})

async function startEverything() {
  postgres = await startThrowawayPostgres()
  upstream = await startScriptedUpstream({ onAnswered: (answered) => served.push(answered) })
  stack = await startStack({
    server: postgres.url,
    models: () => crashModels(upstream.url, models),
    environment: { CREDIT_HOLD_GRACE_SECONDS: String(graceSeconds) },
  })
  worker = stack.worker
  running = [stack.apis[0], await startApi(1)]
  organizations = await makeOrganizations()
  watching = watchBalances(stack.database.url, isMetered)
  secondsAt.loaded = secondsNow()
}

async function loadAndKill() {
  let isOver = false
  const load = runLoad({
    plan: createPlanner(organizations, models, random),
    clients,
    isOver: () => isOver,
    pickProcess: () => pickAlive()?.baseUrl,
  })
  const granting = grantUntil(() => isOver)
  try {
    await killRepeatedly()
    await killBothInAnOutage()
  } finally {
    isOver = true
    clientCalls = await load
    await granting
  }
}

/** Like a load balancer: dead processes get no calls. */
function pickAlive() {
  const alive = running.filter((each) => each !== undefined)
  return alive[random(alive.length)]
}

/** The first process shares its state folder with the worker; the second has its own, as on another machine. */
const startApi = (index: number) =>
  retry(() => {
    const own = { STATE_DIRECTORY: join(stack.folder, 'state-elsewhere') }
    return stack.startApi(`api-${index}-${done.kills}`, index === 0 ? {} : own)
  })

/** Rich organizations have paid for the highest tier; poor ones have a plan and hardly any credits. */
async function makeOrganizations(): Promise<Organization[]> {
  const tenants = await createTenants(stack.service, rich)
  const made: Organization[] = tenants.map((tenant) => ({
    id: tenant.organization_id,
    key: tenant.project_key,
    isPoor: false,
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

/** Repeats a command that fails, as an operator would: its id makes the grant count once. */
async function grantUntil(isOver: () => boolean) {
  const recipients = organizations.filter(({ isPoor }) => isPoor)
  for (let number = 0; !isOver(); number++) {
    const { id: organizationId } = recipients[number % recipients.length]!
    const id = `grant-${number}`
    const command = ['grant', organizationId, '--id', id, '--usd', String(grantUsd)]
    await retry(() => runOperator(stack.service, command))
    granted.push({ organizationId, id, credits: Math.round(grantUsd * 1_000_000) })
    await sleep(grantEveryMs)
  }
}

/** Retries what fails while PostgreSQL is down, as a supervisor does. */
async function retry<T>(work: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + 30_000; ;) {
    try {
      return await work()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await sleep(200)
    }
  }
}

async function killRepeatedly() {
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
      // When PostgreSQL has crashed, the process gets the time to write settlements to disk before it is killed.
      sleep(isCrash ? awayMs / 2 : 0).then(() => killApi(random(running.length))),
    ])
  }
}

async function kill({ child }: ApiProcess) {
  if (child.exitCode !== null || child.signalCode !== null) done.deaths++
  await stopProcess(child, 'SIGKILL')
}

async function killApi(index: number) {
  const victim = running[index]!
  running[index] = undefined
  await kill(victim)
  done.kills++
  const killedAtMs = performance.now()
  running[index] = await startApi(index)
  done.slowestRestartMs = Math.max(
    done.slowestRestartMs,
    Math.round(performance.now() - killedAtMs),
  )
}

async function killWorker() {
  await kill(worker)
  done.workerKills++
  worker = await retry(() => stack.startWorker(`worker-${done.workerKills}`))
}

async function crashPostgres() {
  await postgres.crash()
  done.crashes++
  await sleep(awayMs)
  await postgres.start()
}

/**
 * PostgreSQL crashes, and then both processes are killed while they have settlements that are only on disk. They start
 * again after all holds have been swept, so these settlements are charged late.
 */
async function killBothInAnOutage() {
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
  running = await Promise.all(running.map((_, index) => startApi(index)))
  await untilZero(countSettlementFiles)
}

/** Gives up after `settledMaxMs`; the comparison then reports what is left. */
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

const acknowledged = () => clientCalls.filter((call) => call.receipt)
const withStatus = (status: number) => clientCalls.filter((call) => call.status === status)
const ofKind = (kind: string) => books.ledger.filter((row) => row.kind === kind)

function report() {
  const whole = served.filter(({ isWhole }) => isWhole).length
  const statuses = Map.groupBy(clientCalls, ({ status, code }) => `${status} ${code ?? ''}`.trim())
  console.log({
    ...done,
    calls: clientCalls.length,
    answers: Object.fromEntries([...statuses].map(([status, calls]) => [status, calls.length])),
    hungUp: clientCalls.filter(({ hungUp }) => hungUp).length,
    served: served.length,
    servedWhole: whole,
    acknowledged: acknowledged().length,
    acknowledgedWithoutBalance: acknowledged().filter((call) => call.receipt?.remaining === null)
      .length,
    usage: ofKind('usage').length,
    void_unknown: ofKind('void_unknown').length,
    late_usage: ofKind('late_usage').length,
    writeoff: ofKind('writeoff').length,
    grants: granted.length,
    balanceChecks: watched.checks,
    secondsAt,
  })
  const counts = Object.entries(findings).map(([check, found]) => [check, found.length])
  console.log(Object.fromEntries(counts))
}

test('processes were killed and PostgreSQL crashed while many calls were in flight', () => {
  expect(done.kills).toBeGreaterThanOrEqual(20)
  expect(done.workerKills).toBeGreaterThanOrEqual(2)
  expect(done).toMatchObject({ crashes: 3, deaths: 0 })
  expect(acknowledged().length).toBeGreaterThan(300)
  expect(new Set(acknowledged().map(({ isStreamed }) => isStreamed)).size).toBe(2)
  expect(acknowledged().filter((call) => call.receipt?.remaining === null)).not.toEqual([])
  expect(withStatus(402).length > 0).toBe(!isMetered)
  expect(granted.length).toBeGreaterThan(poor)
  for (const kind of ['void_unknown', 'late_usage', 'writeoff']) {
    expect(ofKind(kind), kind).not.toEqual([])
  }
})

test('a call that cannot be paid or held is refused with 402 or 503, and nothing else fails', () => {
  // 0: the connection broke; 429: killed processes still hold slots; 400: a scripted refusal of the upstream; 529: too many
  // calls wait for the database, which has crashed.
  const expected = [0, 200, 400, 402, 429, 503, 529]
  expect(clientCalls.filter(({ status }) => !expected.includes(status))).toEqual([])
  const codes = new Set(withStatus(402).map(({ code }) => code))
  expect(codes).toEqual(new Set(isMetered ? [] : ['insufficient_credits']))
})

test('at every check no balance was negative, unless it is metered, and the accounts agreed with holds and ledger', () => {
  expect(watched.checks).toBeGreaterThan(seconds)
  expect(watched.found).toEqual([])
})

test('balances fall below zero if calls are metered, and only then', () => {
  expect(books.accounts.some(({ posted }) => posted < 0)).toBe(isMetered)
})

test.each(checkNames)('no findings: %s', (check) => {
  expect(findings[check]).toEqual([])
})

test('holds are swept only for calls of killed processes', () => {
  const swept = billsOf(books.ledger).filter(({ unknown }) => unknown.length > 0)
  expect(swept.length).toBeLessThanOrEqual((done.kills + done.crashes) * clients)
})
