import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'

import { systemClock } from '#platform/clock.ts'
import { connectDatabase, type Db } from '#platform/database.ts'
import { createMetrics } from '#platform/metrics.ts'
import { deriveKeys } from '#platform/secrets.ts'
import { transact } from '#platform/transaction.ts'
import { createTrustedFiles } from '#platform/trusted-file.ts'
import {
  findImbalances,
  holdOf,
  letExpire,
  openOrganization,
  readCredits,
  settlementOf,
} from '#testing/credit-calls.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { createDatabaseProxy } from '#testing/test-gateway.ts'

import { createCredits } from './create-credits.ts'
import { lockAccount } from './holds/account-store.ts'
import { holdPool } from './holds/hold-pool.ts'
import { sweepHolds } from './holds/sweep-store.ts'
import type { Billing } from './settlement.ts'

// Holds and settlements across outages of the database, the disk and the process.

const organizationId = 'org_1'
const call = (id: string, amount = 100n) => ({ organizationId, id, amount })

let direct: Db
let database: Awaited<ReturnType<typeof createTestDatabase>>
let proxy: Awaited<ReturnType<typeof createDatabaseProxy>>
let folder: string

beforeEach(async () => {
  database = await createTestDatabase()
  direct = database.db
  proxy = await createDatabaseProxy(database.url)
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-spool-'))
  await openOrganization(direct, organizationId, 1000n)
})

afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const keys = deriveKeys([{ version: 1, bytes: Buffer.alloc(32, 7) }], 'file-authentication')

type ProcessOptions = { hasFolder?: boolean; isDiskFull?: boolean; billing?: Billing }

/** One process; it is stopped when the test ends. */
function startProcess(options: ProcessOptions = {}) {
  const { hasFolder = true, isDiskFull = false, billing = 'prepaid' } = options
  const db = connectDatabase({ url: proxy.url, ...holdPool })
  const metrics = createMetrics()
  const directory = hasFolder ? folder : undefined
  const files = createTrustedFiles({ directory, now: systemClock, keys })
  const fullDisk = async () => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  }
  const credits = createCredits({
    db,
    billing,
    hasFolder,
    mayDeliver: () => true,
    now: systemClock,
    log: silentLog,
    metrics,
    files: isDiskFull ? { ...files, keep: fullDisk } : files,
    onBalance: () => undefined,
  })
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    await credits.stop()
    await db.destroy()
  }
  onTestFinished(stop)
  const waiting = async () => (await metrics.settlementsWaiting.get()).values[0]?.value ?? 0
  return { credits, stop, waiting }
}

const listSpooled = async () =>
  (await readdir(folder)).filter((name) => name.startsWith('settlements'))

test('a call that ends while the database is away is written to disk, and charged when it is back', async () => {
  const { credits } = startProcess()
  await credits.reserve(holdOf(call('req_1')))
  await proxy.shut()
  expect(await credits.settle(settlementOf(call('req_1', 60n)))).toBeNull()
  expect(await listSpooled()).toHaveLength(1)
  await proxy.reopen()
  await expect.poll(listSpooled, { timeout: 10_000 }).toEqual([])
  const { posted, used, held, events } = await readCredits(direct, organizationId)
  expect([posted, used, held]).toEqual([940n, 60n, 0n])
  expect(events).toEqual(['req_1 completed'])
})

test('another process settles what a dead one left behind, once', async () => {
  const first = startProcess()
  await first.credits.reserve(holdOf(call('req_1')))
  await proxy.shut()
  await first.credits.settle(settlementOf(call('req_1', 60n)))
  await first.stop()
  await proxy.reopen()
  const others = [startProcess(), startProcess()]
  expect(others).toHaveLength(2)
  await expect.poll(listSpooled, { timeout: 10_000 }).toEqual([])
  const { used, entries } = await readCredits(direct, organizationId)
  expect([used, entries.get('req_1')?.kind]).toEqual([60n, 'usage'])
  expect(await findImbalances(direct)).toEqual([])
})

test('a call whose hold is swept while its settlement is on disk is charged late', async () => {
  const first = startProcess()
  await first.credits.reserve(holdOf(call('req_1')))
  await proxy.shut()
  await first.credits.settle(settlementOf(call('req_1', 60n)))
  await first.stop()
  await letExpire(direct, organizationId, 'req_1')
  expect(await sweepHolds(direct)).toBe(1)
  await proxy.reopen()
  startProcess()
  await expect.poll(listSpooled, { timeout: 10_000 }).toEqual([])
  const { used, entries } = await readCredits(direct, organizationId)
  expect([used, entries.get('req_1:late')]).toEqual([60n, { kind: 'late_usage', amount: 60n }])
})

test('503: no credits can be held while the database is away', async () => {
  const { credits } = startProcess()
  await proxy.shut()
  const refused = credits.reserve(holdOf(call('req_1')))
  await expect(refused).rejects.toMatchObject({ code: 'dependency_unavailable', status: 503 })
})

test('402 says in credits and in dollars what is needed, what there is, and what of it is held', async () => {
  const { credits } = startProcess()
  await credits.reserve(holdOf(call('req_0', 300n)))
  const refused = credits.reserve(holdOf(call('req_1', 1001n)))
  await expect(refused).rejects.toMatchObject({
    code: 'insufficient_credits',
    message: expect.stringContaining(
      'up to 1001 credits (0.001001 USD); 1000 (0.001 USD) are in the account and 300 (0.0003 USD) of them are held by calls in flight.',
    ) as string,
  })
})

test('metered: nothing is refused, and receipts name no balance', async () => {
  const { credits } = startProcess({ billing: 'metered' })
  await credits.reserve(holdOf(call('req_1', 5000n)))
  const settled = await credits.settle(settlementOf(call('req_1', 4000n)))
  expect(settled).toEqual({ charged: 4000n, posted: null })
  expect((await readCredits(direct, organizationId)).posted).toBe(-3000n)
})

test('off: calls begin and end without the database, and any process records them later, once', async () => {
  const first = startProcess({ billing: 'off' })
  await proxy.shut()
  await first.credits.reserve(holdOf(call('req_1', 5000n)))
  expect(await first.credits.settle(settlementOf(call('req_1', 4000n)))).toBeNull()
  const names = await readdir(folder)
  expect(names).toEqual([expect.stringMatching(/^unbilled-settlements-/)])
  await first.stop()
  await proxy.reopen()
  startProcess()
  startProcess({ billing: 'off' })
  await expect.poll(() => readdir(folder), { timeout: 10_000 }).toEqual([])
  const { posted, used, entries, events, days } = await readCredits(direct, organizationId)
  expect([posted, used, entries.size]).toEqual([1000n, 0n, 1])
  expect(events).toEqual(['req_1 completed'])
  expect([...days.values()]).toMatchObject([{ requests: 1, credits: 4000n }])
  expect(await findImbalances(direct)).toEqual([])
})

test('off: a call that was held and not settled before the switch is still charged', async () => {
  const before = startProcess()
  await before.credits.reserve(holdOf(call('req_1')))
  await proxy.shut()
  await before.credits.settle(settlementOf(call('req_1', 60n)))
  await before.stop()
  await proxy.reopen()
  startProcess({ billing: 'off' })
  await expect.poll(listSpooled, { timeout: 10_000 }).toEqual([])
  const { used, entries } = await readCredits(direct, organizationId)
  expect([used, entries.get('req_1')?.kind]).toEqual([60n, 'usage'])
})

test.for(['no folder', 'a folder that cannot be written'])(
  'with %s a settlement stays in memory; no new call begins until it is charged',
  async (how) => {
    const hasFolder = how !== 'no folder'
    if (hasFolder) {
      // A file where the folder belongs: root may write into every folder.
      await rm(folder, { recursive: true })
      await writeFile(folder, '')
    }
    const { credits, waiting } = startProcess({ hasFolder })
    await credits.reserve(holdOf(call('req_1')))
    await proxy.shut()
    expect(await credits.settle(settlementOf(call('req_1', 60n)))).toBeNull()
    await proxy.reopen()
    const refused = credits.reserve(holdOf(call('req_2')))
    await expect(refused).rejects.toMatchObject({ code: 'dependency_unavailable' })
    const used = async () => (await readCredits(direct, organizationId)).used
    await expect.poll(used, { timeout: 10_000 }).toBe(60n)
    await expect.poll(waiting, { timeout: 5000 }).toBe(0)
    await credits.reserve(holdOf(call('req_2')))
    await credits.settle(settlementOf(call('req_2')))
  },
)

test('with a full disk, calls begin again a second after the database is back', async () => {
  const { credits } = startProcess({ isDiskFull: true })
  await credits.reserve(holdOf(call('req_1')))
  await proxy.shut()
  expect(await credits.settle(settlementOf(call('req_1', 60n)))).toBeNull()
  await sleep(500) // it has been tried again, in vain
  await proxy.reopen()
  const canReserve = () =>
    credits.reserve(holdOf(call('req_2'))).then(
      () => true,
      () => false,
    )
  const ratio = await waitingRatio('calls again', 1000, () => waitUntil(canReserve))
  expect(ratio).toBeLessThan(5)
  await credits.settle(settlementOf(call('req_2')))
})

test('settlements that the database rejects delay no others, not even those in the same file', async () => {
  const first = startProcess()
  for (let index = 1; index <= 5; index++) await first.credits.reserve(holdOf(call(`req_${index}`)))
  await proxy.shut()
  const rejected = (id: string) => settlementOf({ organizationId: 'org_gone', id, amount: 60n })
  for (let index = 1; index <= 5; index++) {
    const poison = Array.from({ length: 2 }, (_, each) =>
      first.credits.settle(rejected(`bad_${index}_${each}`)),
    )
    await Promise.all([...poison, first.credits.settle(settlementOf(call(`req_${index}`, 60n)))])
  }
  await first.stop()
  await proxy.reopen()
  startProcess()
  const used = async () => (await readCredits(direct, organizationId)).used
  await expect.poll(used, { timeout: 10_000 }).toBe(300n)
  expect((await readCredits(direct, organizationId)).held).toBe(0n)
})

test('a locked account does not delay the settlements of other organizations', async () => {
  await openOrganization(direct, 'org_locked', 1000n)
  const first = startProcess()
  const ofLocked = (id: string) => ({ organizationId: 'org_locked', id, amount: 60n })
  await first.credits.reserve(holdOf(call('req_last')))
  for (let index = 1; index <= 5; index++)
    await first.credits.reserve(holdOf(ofLocked(`req_${index}`)))
  await proxy.shut()
  for (let index = 1; index <= 5; index++) {
    await first.credits.settle(settlementOf(ofLocked(`req_${index}`)))
  }
  await first.credits.settle(settlementOf(call('req_last', 60n)))
  await first.stop()
  const unlocked = Promise.withResolvers<void>()
  const locking = transact(direct, async (tx) => {
    await lockAccount(tx, 'org_locked')
    await unlocked.promise
  })
  await proxy.reopen()
  startProcess()
  const usedBy = async (id: string) => (await readCredits(direct, id)).used
  await expect.poll(() => usedBy(organizationId), { timeout: 15_000 }).toBe(60n)
  expect(await usedBy('org_locked')).toBe(0n)
  unlocked.resolve()
  await locking
  await expect.poll(() => usedBy('org_locked'), { timeout: 10_000 }).toBe(300n)
  await expect.poll(listSpooled, { timeout: 10_000 }).toEqual([])
})

test('a forged or damaged file charges nothing and delays no other settlement', async () => {
  const name = 'settlements-0192f0c4-0000-7000-8000-000000000000'
  await writeFile(join(folder, name), 'gatehouse-kept-1 1 00\n[]')
  const { credits } = startProcess()
  await credits.reserve(holdOf(call('req_1')))
  await proxy.shut()
  await credits.settle(settlementOf(call('req_1', 60n)))
  await proxy.reopen()
  await expect.poll(listSpooled, { timeout: 10_000 }).toEqual([name])
  expect((await readCredits(direct, organizationId)).used).toBe(60n)
})

test('a process that stops waits for the settlements that are under way', async () => {
  const { credits, stop } = startProcess()
  await credits.reserve(holdOf(call('req_1')))
  const settling = credits.settle(settlementOf(call('req_1', 60n)))
  await stop()
  expect((await settling)?.charged).toBe(60n)
})
