import { afterAll, beforeAll, expect, test } from 'vitest'

import { readBalances } from '#credits/holds/account-store.ts'
import { findLedgerPosition, type LedgerPage, listLedger } from '#credits/ledger-store.ts'
import { sumUsage, type UsagePage } from '#credits/reports/usage-day-store.ts'
import type { Db } from '#platform/database.ts'
import { openSeeded } from '#testing/plans.ts'

import { readStandings } from './point-store.ts'
import {
  readEntries,
  readNewEntries,
  readStarts,
  readStoredBalance,
  readUsageDays,
  readUsageDaysOf,
} from './reconcile-store.ts'
import { reconcile } from './reconcile.ts'

// With 250,000 entries every query of an endpoint still goes through an index, and all can be checked.

let seeded: Awaited<ReturnType<typeof openSeeded>>
let db: Db
let plansOf: (typeof seeded)['plansOf']

beforeAll(async () => {
  seeded = await openSeeded('many-ledger-entries.sql')
  ;({ db, plansOf } = seeded)
}, 300_000)

afterAll(() => seeded[Symbol.asyncDispose]())

const organizationId = `org_${'0'.repeat(24)}`
const after = { at: new Date('2026-02-01T00:00:00Z'), seq: '100000' }
const noFilter = { projectId: undefined, kind: undefined, from: undefined, to: undefined }
const ledger = (page: Partial<LedgerPage>) => () =>
  listLedger(db, organizationId, { after, limit: 100, order: 'asc', ...noFilter, ...page })
const usage = (page: Partial<UsagePage>) => () =>
  sumUsage(db, organizationId, {
    from: '2026-01-01',
    to: '2026-01-30',
    groups: ['day'],
    groupLabel: undefined,
    label: undefined,
    after: undefined,
    limit: 100,
    order: 'asc',
    projectId: undefined,
    keyId: undefined,
    model: undefined,
    ...page,
  })
const inTransaction =
  (read: (tx: Parameters<typeof readStoredBalance>[0]) => Promise<unknown>) => () =>
    db.transaction().execute((tx) => read(tx))

const hundred = Array.from({ length: 100 }, (_, n) => `org_${String(n).padStart(24, '0')}`)

const queries: Record<string, { run: () => Promise<unknown>; index: string }> = {
  'first page of the ledger': { run: ledger({ after: undefined }), index: 'ledger_entry_by_age' },
  'later page of the ledger': { run: ledger({}), index: 'ledger_entry_by_age' },
  'the ledger backwards': { run: ledger({ order: 'desc' }), index: 'ledger_entry_by_age' },
  'the ledger of a time': {
    run: ledger({ from: new Date('2026-02-01'), to: new Date('2026-02-02') }),
    index: 'ledger_entry_by_age',
  },
  'calls only': { run: ledger({ kind: 'usage' }), index: 'ledger_entry_by_age' },
  'payments only': {
    run: ledger({ kind: 'payment', after: undefined }),
    index: 'ledger_entry_by_kind',
  },
  'the ledger of a project': {
    run: ledger({ projectId: 'proj_3' }),
    index: 'ledger_entry_by_project',
  },
  'a cursor': {
    run: () => findLedgerPosition(db, organizationId, 'pay_1'),
    index: 'ledger_entry_pkey',
  },
  'usage by day': { run: usage({}), index: 'usage_day_pkey' },
  'usage by everything, a later page': {
    run: usage({
      groups: ['day', 'project', 'key', 'model'],
      after: ['2026-01-20', 'proj_3', 'key_7', 'model-2'],
    }),
    index: 'usage_day_pkey',
  },
  balances: {
    run: () =>
      readBalances(
        db,
        [1, 2].map((n) => `org_${String(n).padStart(24, '0')}`),
      ),
    index: 'credit_account_pkey',
  },
  'a page to check': {
    run: inTransaction((tx) => readEntries(tx, organizationId, after, 1000)),
    index: 'ledger_entry_by_age',
  },
  'sums to check': {
    run: inTransaction((tx) => readUsageDays(tx, organizationId, '2026-01-30', '2026-01-31')),
    index: 'usage_day_pkey',
  },
  'an account to check': {
    run: inTransaction((tx) => readStoredBalance(tx, organizationId)),
    index: 'credit_account_pkey',
  },
  'where a hundred organizations stand': {
    run: () => readStandings(db, '', 100),
    index: 'ledger_entry_by_age',
  },
  'the last entries of a hundred organizations': {
    run: inTransaction((tx) => readStarts(tx, hundred)),
    index: 'ledger_entry_by_age',
  },
  'the news of a hundred organizations': {
    run: inTransaction((tx) =>
      readNewEntries(
        tx,
        hundred.map((id) => ({ id, after })),
        10,
      ),
    ),
    index: 'ledger_entry_by_age',
  },
  'the day sums of a hundred organizations': {
    run: inTransaction((tx) =>
      readUsageDaysOf(
        tx,
        hundred.map((id) => ({ id, from: '2026-01-30', before: '2026-02-01' })),
      ),
    ),
    index: 'usage_day_pkey',
  },
}

test.each(Object.entries(queries))('%s uses its index', async (_, { run, index }) => {
  const plans = await plansOf(run)
  expect(plans.map((plan) => plan['Index Name'])).toContain(index)
  const scans = plans.filter((plan) => plan['Node Type'] === 'Seq Scan')
  const scanned = scans.map((plan) => plan['Relation Name'])
  for (const large of ['ledger_entry', 'usage_day']) expect(scanned).not.toContain(large)
})

test('the ledger comes out of its index in order, without sorting', async () => {
  for (const page of [{}, { projectId: 'proj_3' }, { order: 'desc' as const }]) {
    const plans = await plansOf(ledger(page))
    expect(plans.map((plan) => plan['Node Type'])).not.toContain('Sort')
  }
})

test('all entries are checked, one page at a time', async () => {
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  let most = 0
  const watching = setInterval(() => (most = Math.max(most, process.memoryUsage().heapUsed)), 50)
  const startedAt = performance.now()
  const report = await reconcile(seeded.plainDb)
  clearInterval(watching)
  const seconds = (performance.now() - startedAt) / 1000
  const megabytes = (most - before) / 1024 / 1024
  process.stdout.write(`251,001 entries in ${seconds.toFixed(1)} s, +${megabytes.toFixed(0)} MB\n`)
  expect(report).toMatchObject({ organizations: 1001, entries: 251_001, differences: [] })
  expect(megabytes).toBeLessThan(200)
}, 300_000)
