import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { insertChange } from '#audit/change-store.ts'
import { runTask } from '#platform/background/run-task.ts'
import { createLog } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'
import { createTestApi } from '#testing/test-api.ts'

import { listTasks } from './worker.ts'

const signingKey = `1:${randomBytes(32).toString('base64')}`

async function createTasks() {
  const { house } = await createTestApi({ environment: { AUDIT_SIGNING_KEYS: signingKey } })
  return listTasks(house)
}

test('the table of operations.md has every task of the worker, with its bounds', async () => {
  const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')
  const rows = page.matchAll(/^\| `(\w+)` \| ([\d.]+) s \| (\d+) % \| (\d+|all) \| `(\w+)` \|$/gm)
  const documented = [...rows].map(([, name, seconds, percent, rowsMax, failureCode]) => ({
    name,
    everyMs: Number(seconds) * 1000,
    share: Number(percent) / 100,
    rowsMax: rowsMax === 'all' ? null : Number(rowsMax),
    failureCode,
  }))
  const tasks = (await createTasks()).map(({ name, everyMs, share, rowsMax, failureCode }) => ({
    name,
    everyMs,
    share,
    rowsMax,
    failureCode,
  }))
  expect(documented).toEqual(tasks)
})

test('apart from the numbering, each task leaves at least half of a core, and the ledger check nine tenths', async () => {
  const shares = new Map((await createTasks()).map(({ name, share }) => [name, share]))
  expect(shares.get('ledger_check')).toBe(0.1)
  const large = [...shares].filter(([, share]) => share > 0.5).map(([name]) => name)
  expect(large).toEqual(['event_numbering'])
})

test('a table that cannot be swept makes the pass fail, and the others are swept', async () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  const { house, db, organization } = await createTestApi({ change: (made) => ({ ...made, log }) })
  const countChanges = async () =>
    (await db.selectFrom('config_change').select('seq').execute()).length
  const { organizationId } = organization
  const change = { organizationId, kind: 'policy', objectId: 'pol_1' } as const
  const twoDaysAgo = new Date(Date.now() - 2 * 24 * 60 * 60 * 1000)
  await transact(db, (tx) => insertChange(tx, change, twoDaysAgo))
  expect(await countChanges()).toBe(1)
  // The first table of a pass; changes of the configuration are the last one.
  await sql`alter table idempotency_key rename to idempotency_key_away`.execute(db)
  const task = listTasks(house).find(({ name }) => name === 'sweeps')
  if (!task) throw new Error('There is no such task.')
  const stopping = new AbortController()
  const running = runTask(task, house, stopping.signal)
  onTestFinished(async () => {
    stopping.abort()
    await running
  })
  const countFailures = async () =>
    (await house.metrics.backgroundFailures.get()).values.find(
      ({ labels }) => labels.task === 'sweeps',
    )?.value
  await expect.poll(countFailures, { timeout: 20_000 }).toBe(1)
  expect(await countChanges()).toBe(0)
  const codes = lines.filter((line) => line.includes('_failed"'))
  expect(codes).toEqual([
    expect.stringContaining('"idempotency_keys_sweep_failed"'),
    expect.stringContaining('"sweeps_failed"'),
  ])
})
