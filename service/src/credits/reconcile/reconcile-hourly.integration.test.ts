import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { operator } from '#audit/event.ts'
import { recordPayment } from '#credits/payments/payments.ts'
import { createLog } from '#platform/log.ts'
import { createTestApi } from '#testing/test-api.ts'

import { reconcileHourly, reconcileOnce } from './reconcile-hourly.ts'

async function prepare() {
  const { house, organization } = await createTestApi()
  const { organizationId } = organization
  await recordPayment(organizationId, { id: 'pay_1', amount: 100n }, { ...house, by: operator })
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  const gauge = async (name: 'ledgerDifferences' | 'ledgerCheckedAt') =>
    (await house.metrics[name].get()).values[0]?.value
  return { house: { ...house, log }, lines, gauge, organizationId }
}
const { signal } = new AbortController()

test('every difference is logged, and the gauge says how many', async () => {
  const { house, lines, gauge, organizationId } = await prepare()
  expect(await gauge('ledgerCheckedAt')).toBe(0)
  expect(await reconcileOnce(house, signal)).toBe(true)
  expect(await gauge('ledgerDifferences')).toBe(0)
  expect(lines.join('')).toContain('"event":"ledger_checked"')
  expect((await gauge('ledgerCheckedAt')) ?? 0).toBeGreaterThan(Date.now() / 1000 - 60)
  await sql`update credit_account set posted = 99, used = 1`.execute(house.db)
  expect(await reconcileOnce(house, signal)).toBe(true)
  expect(await gauge('ledgerDifferences')).toBe(2)
  const problems = lines.filter((line) => line.includes('"event":"problem"'))
  expect(problems).toHaveLength(2)
  expect(problems[0]).toContain(`${organizationId}: posted`)
  expect(problems[0]).toContain('expected 100, found 99')
})

test('a check that could not read everything is logged, does not count as a check, and clears no alarm', async () => {
  const { house, lines, gauge } = await prepare()
  house.metrics.ledgerDifferences.set(3)
  await sql`alter table usage_day rename to away`.execute(house.db)
  expect(await reconcileOnce(house, signal)).toBe(true)
  expect(await gauge('ledgerDifferences')).toBe(3)
  expect(lines.join('')).toContain('ledger_check_failed')
  expect(lines.join('')).toContain('"unread":1')
  expect(await gauge('ledgerCheckedAt')).toBe(0)
})

test('it ends at once when its signal aborts', async () => {
  const { house } = await prepare()
  const stopping = new AbortController()
  const running = reconcileHourly(house, stopping.signal)
  await sleep(10)
  stopping.abort()
  await expect(running).resolves.toBeUndefined()
})
