import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { runTask } from '#platform/background/run-task.ts'
import type { Db } from '#platform/database.ts'
import { createMetrics } from '#platform/metrics.ts'
import { chargeCall } from '#testing/ledger.ts'
import { silentLog } from '#testing/silent-log.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { checkNews, entriesMax } from './check-news.ts'
import { reconcileOnce } from './reconcile-hourly.ts'

// Many organizations, checked again and again without a wait between the checks: the check takes its share of the time and no more,
// while it reads every ledger for the first time and while there is little news. LEDGER_ORGANIZATIONS and LEDGER_SECONDS set the size.

const organizations = sizeOf({ usual: 5000, long: 100_000, variable: 'LEDGER_ORGANIZATIONS' })
const seconds = sizeOf({ usual: 8, long: 150, variable: 'LEDGER_SECONDS' })
const share = 0.1
const windowSeconds = 5

let database: Awaited<ReturnType<typeof createTestDatabase>>
/** Of the check alone: what its one connection takes is what the check takes. */
let checkDb: Db

const seed = sql`
  with created as (
    insert into organization (id, name, created_at, paid_micro_usd)
    select 'org_' || lpad(n::text, 24, '0'), 'x', '2026-01-01', 1000 from generate_series(1, ${organizations}) n
    returning id
  )
  insert into ledger_entry (organization_id, id, debit, credit, amount, kind, meta, at)
  select created.id, cause.id, cause.debit::ledger_account, 'wallet', 1000, cause.kind::ledger_kind, '{}', cause.at
  from created, (values
    ('pay_1', 'topup', 'payment', timestamptz '2026-01-01'),
    ('gift_1', 'promo', 'grant', timestamptz '2026-01-02')
  ) as cause (id, debit, kind, at)`

beforeAll(async () => {
  database = await createTestDatabase()
  const patient = connectPatiently({ url: database.url, poolSize: 1, statementTimeoutMs: 0 })
  await seed.execute(patient)
  await sql`update credit_account set posted = 2000`.execute(patient)
  await sql`vacuum analyze`.execute(patient)
  await patient.destroy()
  checkDb = connectPatiently({ url: database.url, poolSize: 1 })
}, 600_000)
afterAll(async () => {
  await checkDb.destroy()
  await database[Symbol.asyncDispose]()
})

/** Of the connection's process, where it runs on this machine. */
async function backendSeconds(): Promise<number | undefined> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(checkDb)
  const text = await readFile(`/proc/${rows[0]?.pid}/stat`, 'utf8').catch(() => undefined)
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields && (Number(fields[11]) + Number(fields[12])) / 100
}

const processSeconds = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000_000
}

/** With `work`, which is done every second, at least until one check has come to its end. */
async function measure(name: string, work?: () => Promise<void>) {
  const metrics = createMetrics()
  const deps = { db: checkDb, now: () => new Date(), log: silentLog, metrics }
  const stopping = new AbortController()
  const backendBefore = await backendSeconds()
  const [processBefore, startedMs] = [processSeconds(), performance.now()]
  let longestStep = 0
  const running = runTask(
    {
      name: 'ledger_check',
      everyMs: 0,
      share,
      rowsMax: entriesMax,
      failureCode: 'ledger_check_failed',
      run({ signal, rest }) {
        let sinceMs = performance.now()
        return reconcileOnce(deps, {
          signal,
          async rest() {
            longestStep = Math.max(longestStep, (performance.now() - sinceMs) / 1000)
            await rest()
            sinceMs = performance.now()
          },
        })
      },
    },
    deps,
    stopping.signal,
  )
  const busySeconds = async () =>
    (await metrics.backgroundSeconds.get()).values.reduce((sum, { value }) => sum + value, 0)
  const countPasses = async () => (await metrics.backgroundRuns.get()).values[0]?.value ?? 0
  const isWaiting = async () => work !== undefined && (await countPasses()) === 0
  const bySecond = [0]
  for (let second = 0; second < seconds || (await isWaiting()); second++) {
    await sleep(1000)
    await work?.()
    bySecond.push(await busySeconds())
  }
  stopping.abort()
  await running
  const passed = (performance.now() - startedMs) / 1000
  const backendAfter = await backendSeconds()
  const windows = bySecond.flatMap((busy, second) =>
    second < windowSeconds ? [] : [busy - (bySecond[second - windowSeconds] ?? 0)],
  )
  const figures = {
    passed,
    busy: (await busySeconds()) / passed,
    busiestWindow: Math.max(...windows) / windowSeconds,
    longestStep,
    backend: backendAfter === undefined ? 0 : (backendAfter - (backendBefore ?? 0)) / passed,
    process: (processSeconds() - processBefore) / passed,
    passes: await countPasses(),
  }
  const text = Object.entries(figures).map(([key, value]) => `${key} ${value.toFixed(3)}`)
  process.stdout.write(`${organizations} organizations, ${name}: ${text.join(', ')}\n`)
  expect((await metrics.backgroundFailures.get()).values).toEqual([])
  expect((await metrics.ledgerDifferences.get()).values[0]?.value ?? 0).toBe(0)
  return figures
}

/** Seconds are not exact on a loaded machine. */
const tolerance = 0.02

function expectShare({ passed, busy, busiestWindow, longestStep, backend }: Figures) {
  // The last step may have had no rest yet.
  expect(busy).toBeLessThan(share + longestStep / passed + tolerance)
  expect(busiestWindow).toBeLessThan(share + longestStep / windowSeconds + tolerance)
  expect(backend).toBeLessThan(share + tolerance)
}
type Figures = Awaited<ReturnType<typeof measure>>

test(
  'the first check of all ledgers takes at most its share',
  async () => {
    const figures = await measure('every ledger from its beginning')
    expect(figures.busy).toBeGreaterThan(share / 2)
    expectShare(figures)
  },
  seconds * 1000 + 120_000,
)

test(
  'checks with little news take at most their share, and come to their end',
  async () => {
    const all = await checkNews(checkDb, { onFailure: () => undefined })
    expect(all).toMatchObject({ organizations, differenceCount: 0, unread: 0 })
    let calls = 0
    const callSome = async () => {
      for (let call = 0; call < 5; call++) {
        const number = 1 + ((calls++ * 7919) % organizations)
        const organizationId = `org_${String(number).padStart(24, '0')}`
        await chargeCall(database.db, organizationId, { inputTokens: 1, outputTokens: 1 })
      }
    }
    const figures = await measure('little news', callSome)
    expectShare(figures)
  },
  seconds * 1000 + 600_000,
)
