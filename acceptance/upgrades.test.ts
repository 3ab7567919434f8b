import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { runGatehouse } from '@gatehouse/tools/run-script'
import { type ApiProcess, stopProcess, untilReady } from '@gatehouse/tools/service-process'
import { createTenants, runOperator, type Tenant } from '@gatehouse/tools/start-stack'
import { beforeAll, expect, onTestFinished, test } from 'vitest'

import { readBooks, watchBalances } from './support/credits/books.ts'
import { makeRelease } from './support/release.ts'
import { ask, formats } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// Two releases on one database, while it is upgraded under load. The later release is this one with one migration more.

const stack = useStack()
let tenants: Tenant[] = []
beforeAll(async () => {
  tenants = await createTenants(stack().service, 4)
})

const migrations = readdirSync(new URL('../service/migrations/', import.meta.url))
const ownNumber = migrations.toSorted().at(-1)?.slice(0, 4) ?? ''
/** As an expanding migration is: it locks the busiest tables for a moment, and adds to them. */
const expanding = {
  '9001_expanding.sql': `-- Works with releases since ${ownNumber}
    alter table credit_account add column note text;
    alter table ledger_entry add column note text;
    alter table credit_hold add column note text;`,
}
/** Says nothing of earlier releases. */
const contracting = { ...expanding, '9002_contracting.sql': 'create table contracted (id int);' }

const migrateOld = () => runGatehouse(['migrate'], { environment: { ...stack().service } })

/** Clients that call models of any process in the list until they are stopped. */
function startLoad(processes: readonly ApiProcess[]) {
  const calls: { status: number; id: string; baseUrl: string }[] = []
  let isOver = false
  const run = async (client: number) => {
    for (let turn = client; !isOver; turn++) {
      const { baseUrl } = processes[turn % processes.length]!
      const credential = tenants[client % tenants.length]?.project_key ?? ''
      const format = formats[turn % formats.length]!
      const script = { tokens: 10, paceMs: 5, usage: { input: 20, output: 10 } }
      const isStreamed = turn % 2 === 0
      const answer = await ask(
        { baseUrl, credential },
        { format, model: 'chat-scripted', script, isStreamed },
      ).catch(() => undefined)
      const isWhole = answer?.isBroken === false
      const status = isWhole ? answer.status : 0
      calls.push({ status, id: answer?.headers['x-request-id'] ?? '', baseUrl })
    }
  }
  const clients = Array.from({ length: 8 }, (_, client) => run(client))
  return {
    calls,
    async stop() {
      isOver = true
      await Promise.all(clients)
    },
  }
}

test('an upgrade under load fails no call and loses no charge, and the older release still migrates and starts', async () => {
  const { service, apis, folder, database } = stack()
  const later = await makeRelease(expanding)
  onTestFinished(later.remove)
  const before = await readBooks(database.url)
  const processes = [...apis]
  const load = startLoad(processes)
  const watch = watchBalances(database.url)
  await sleep(1500)

  expect(await later.migrate(service)).toBe('migrate: applied 9001_expanding.sql\n')
  const state = join(folder, 'state-later')
  const added = await later.startApi(
    { ...service, STATE_DIRECTORY: state },
    join(folder, 'later.log'),
  )
  onTestFinished(() => stopProcess(added.child))
  await untilReady(added)
  processes.push(added)
  expect(await migrateOld()).toBe(
    'migrate: nothing to do: the schema is of a newer release (9001_expanding.sql), and works with this one\n',
  )
  const again = await stack().startApi('older-again')
  await untilReady(again)
  processes.push(again)
  const startedAt = load.calls.length
  await expect.poll(() => load.calls.length, { timeout: 60_000 }).toBeGreaterThan(startedAt + 150)
  await load.stop()

  const { calls } = load
  expect(calls.filter(({ status }) => status !== 200)).toEqual([])
  for (const { baseUrl } of processes) {
    expect(calls.filter((call) => call.baseUrl === baseUrl).length).toBeGreaterThan(20)
  }
  const books = await readBooks(database.url)
  const charged = books.ledger.slice(before.ledger.length).filter(({ kind }) => kind === 'usage')
  expect(charged.map(({ id }) => id).toSorted()).toEqual(calls.map(({ id }) => id).toSorted())
  expect(new Set(charged.map(({ amount }) => amount)).size).toBe(1)
  expect(books.holds).toBe(0)
  const { checks, found } = await watch.stop()
  expect([checks > 0, found]).toEqual([true, []])
  console.log(`${calls.length} calls during the upgrade, ${checks} checks of all balances`)
})

test('after a migration that excludes it, a release leaves the traffic and refuses to start, and says what to do', async () => {
  const { service, apis } = stack()
  const later = await makeRelease(contracting)
  onTestFinished(later.remove)
  await later.migrate(service)

  const refusal = new RegExp(
    `The database was migrated by a newer release \\(9002_contracting.sql\\) and works with releases since 9002; this one is ${ownNumber}\\. Start a release that has the migration 9002\\.`,
  )
  await expect(stack().startApi('too-old')).rejects.toThrow(refusal)
  await expect(stack().startWorker('too-old-worker')).rejects.toThrow(refusal)
  await expect(migrateOld()).rejects.toThrow(refusal)
  await expect(runOperator(service, ['list'])).rejects.toThrow(refusal)

  const [running] = apis
  const reasons = async () => {
    const answer = await fetch(running!.metricsUrl.replace('/metrics', '/health/ready'))
    return ((await answer.json()) as { reasons?: string[] }).reasons?.join() ?? ''
  }
  await expect.poll(reasons, { timeout: 60_000, interval: 500 }).toMatch(refusal)
})
