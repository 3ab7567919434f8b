import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { operator } from '#audit/event.ts'
import { recordPayment } from '#credits/payments/payments.ts'
import { withoutRest } from '#platform/background/run-task.ts'
import { createLog } from '#platform/log.ts'
import { createTestApi } from '#testing/test-api.ts'

import { reconcileOnce } from './reconcile-hourly.ts'

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
const turn = { signal: new AbortController().signal, rest: withoutRest }

test('every difference is logged, and the gauge says how many', async () => {
  const { house, lines, gauge, organizationId } = await prepare()
  expect(await gauge('ledgerCheckedAt')).toBe(0)
  await reconcileOnce(house, turn)
  expect(await gauge('ledgerDifferences')).toBe(0)
  expect(lines.join('')).toContain('"event":"ledger_checked"')
  expect((await gauge('ledgerCheckedAt')) ?? 0).toBeGreaterThan(Date.now() / 1000 - 60)
  await sql`update credit_account set posted = 99, used = 1`.execute(house.db)
  await reconcileOnce(house, turn)
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
  await reconcileOnce(house, turn)
  expect(await gauge('ledgerDifferences')).toBe(3)
  expect(lines.join('')).toContain('ledger_check_failed')
  expect(lines.join('')).toContain('"unread":1')
  expect(await gauge('ledgerCheckedAt')).toBe(0)
})

test('a difference is logged and counted before the check has come to its end', async () => {
  const { house, lines, gauge } = await prepare()
  await sql`update credit_account set posted = 99`.execute(house.db)
  const stopped = reconcileOnce(house, {
    signal: turn.signal,
    async rest() {
      if (lines.some((line) => line.includes('ledger_differs'))) throw new Error('enough')
    },
  })
  await expect(stopped).rejects.toThrow('enough')
  expect(await gauge('ledgerDifferences')).toBe(1)
  expect(await gauge('ledgerCheckedAt')).toBe(0)
})

test('a check that leaves organizations to the next one does not count as a check, and clears no alarm', async () => {
  const { house, lines, gauge } = await prepare()
  await sql`insert into organization (id, name, created_at)
    select 'org_' || lpad(n::text, 24, '0'), 'x', now() from generate_series(1, 1001) n`.execute(
    house.db,
  )
  await sql`update credit_account set posted = 1 where posted = 0`.execute(house.db)
  house.metrics.ledgerDifferences.set(2000)
  await reconcileOnce(house, turn)
  expect(lines.at(-1)).toContain('"differences":1000,"unread":0,"postponed":1')
  expect(await gauge('ledgerDifferences')).toBe(2000)
  expect(await gauge('ledgerCheckedAt')).toBe(0)
}, 60_000)

test('it ends when its signal aborts', async () => {
  const { house } = await prepare()
  const stopped = reconcileOnce(house, { ...turn, signal: AbortSignal.abort() })
  await expect(stopped).rejects.toThrow(/abort/)
})
