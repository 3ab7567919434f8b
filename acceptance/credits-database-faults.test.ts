import { setTimeout as sleep } from 'node:timers/promises'

import type { Answered } from '@gatehouse/tools/scripted-upstream/call'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { createTenants } from '@gatehouse/tools/start-stack'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { countHolds, readBooks, watchBalances } from './support/credits/books.ts'
import { createPlanner, createRandom, crashModels } from './support/credits/calls.ts'
import { checkNames, compareLogs, type Findings } from './support/credits/comparison.ts'
import { type ClientCall, runLoad } from './support/credits/load.ts'
import { useStack } from './support/use-stack.ts'

// Paid calls while PostgreSQL ends connections, becomes read-only and refuses connections, each without a restart of
// anything. Afterwards what clients received, what the upstream served and what the ledger contains must agree.

const seed = Number(process.env['CREDIT_FAULT_SEED'] ?? Date.now() % 2 ** 31)
const models = 500
const faultMs = 1500
const killings = 8

const served: Answered[] = []
const upstream = await startScriptedUpstream({ onAnswered: (answered) => served.push(answered) })
afterAll(upstream.stop)
const stack = useStack({ processes: 2, models: () => crashModels(upstream.url, models) })

let administrator: pg.Client
let clientCalls: ClientCall[] = []
let findings: Findings
let watched: { checks: number; found: object[] }
/** How long after the end of a fault the first call was served. */
const servedAgainAfterMs: Record<string, number> = {}

const change = (what: string) =>
  administrator.query(`alter database ${stack().database.name} ${what}`)
const endConnections = () =>
  administrator.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
    stack().database.name,
  ])

const servedWhole = () => served.filter(({ isWhole }) => isWhole).length

async function untilServedAgain(fault: string) {
  const [before, endedAt] = [servedWhole(), performance.now()]
  await vi.waitUntil(() => servedWhole() > before + 5, { timeout: 60_000, interval: 20 })
  servedAgainAfterMs[fault] = Math.round(performance.now() - endedAt)
}

async function causeFaults() {
  await untilServedAgain('none')
  for (let round = 0; round < killings; round++) {
    await endConnections()
    await sleep(150)
  }
  await untilServedAgain('connections ended')
  await change('set default_transaction_read_only = on')
  await endConnections()
  await sleep(faultMs)
  // The connections that were opened meanwhile stay: the service must not need a restart to write again.
  await change('reset default_transaction_read_only')
  await untilServedAgain('read-only')
  await change('with allow_connections false')
  await endConnections()
  await sleep(faultMs)
  await change('with allow_connections true')
  await untilServedAgain('connections refused')
}

beforeAll(async () => {
  console.log(`seed ${seed}`)
  const url = new URL(stack().database.url)
  url.pathname = '/postgres'
  administrator = new pg.Client({ connectionString: url.toString() })
  await administrator.connect()
  const tenants = await createTenants(stack().service, 8)
  const organizations = tenants.map(({ organization_id, project_key }) => ({
    id: organization_id,
    key: project_key,
    isPoor: false,
  }))
  const random = createRandom(seed)
  const { base_urls } = stack().description
  const watching = watchBalances(stack().database.url)
  let isOver = false
  const load = runLoad({
    plan: createPlanner(organizations, models, random),
    clients: 16,
    isOver: () => isOver,
    pickProcess: () => base_urls[random(base_urls.length)],
  })
  try {
    await causeFaults()
  } finally {
    isOver = true
    clientCalls = await load
  }
  // What is still held after that, the comparison reports.
  const isSettled = async () => (await countHolds(stack().database.url)) === 0
  await vi.waitUntil(isSettled, { timeout: 60_000, interval: 100 }).catch(() => undefined)
  watched = await watching.stop()
  const books = await readBooks(stack().database.url)
  findings = compareLogs({ clientCalls, served, books, granted: [] })
  const statuses = Map.groupBy(clientCalls, ({ status, code }) => `${status} ${code ?? ''}`.trim())
  console.log(
    Object.fromEntries([...statuses].map(([status, calls]) => [status, calls.length])),
    servedAgainAfterMs,
  )
})
afterAll(() => administrator?.end())

test('a call is served or refused with 503 or 529; nothing else fails, and no process ends', () => {
  // 0: the client hung up as planned; 400: a scripted refusal of the upstream; 529: too many calls wait for the database.
  const failed = clientCalls.filter(
    ({ status, hungUp }) => ![200, 400, 503, 529].includes(status) && !hungUp,
  )
  expect(failed).toEqual([])
  const refused = clientCalls.filter(({ status }) => status === 503)
  for (const { code } of refused) expect(['dependency_unavailable', 'overloaded']).toContain(code)
  expect(refused.length).toBeGreaterThan(0)
  expect(clientCalls.filter((call) => call.receipt).length).toBeGreaterThan(10)
  expect(stack().apis.map(({ child }) => child.exitCode)).toEqual([null, null])
})

test.each(checkNames)('no findings: %s', (check) => {
  expect(findings[check]).toEqual([])
})

test('at every check no balance was negative, and the accounts agreed with holds and ledger', () => {
  expect(watched.checks).toBeGreaterThan(10)
  expect(watched.found).toEqual([])
})
