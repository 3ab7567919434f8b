import { afterAll, beforeAll, expect, test } from 'vitest'

import { openSeeded } from '#testing/plans.ts'

import { findRange } from './cursor-store.ts'
import { listDeadLetters } from './dead-letter-store.ts'
import { listSinks } from './sink-store.ts'

// Sinks that are far behind, in a log that many organizations share: what is read of the log comes out of its key.

let seeded: Awaited<ReturnType<typeof openSeeded>>
beforeAll(async () => {
  seeded = await openSeeded('sinks-behind.sql')
}, 120_000)
afterAll(() => seeded[Symbol.asyncDispose]())

const firstPage = { after: undefined, limit: 100, order: 'asc' } as const
const day = (number: number, time = '00:00') => new Date(`2026-01-0${number}T${time}:00Z`)
/** The transaction is only a type here: nothing is written. */
const tx = () => seeded.db as never

const queries: Record<string, () => Promise<unknown>> = {
  'the list of sinks': () => listSinks(seeded.db, 'org_7', firstPage),
  'the range of a replay': () =>
    findRange(tx(), { organizationId: 'org_7', from: day(2), to: day(5), upTo: 950 }),
  'dead letters': () => listDeadLetters(seeded.db, 'exp_7_3', firstPage),
}

test.each(Object.entries(queries))('%s: entries and dead letters by their keys', async (_, run) => {
  const plans = await seeded.plansOf(run)
  const large = plans.filter((plan) =>
    /^(audit_log_day|export_dead_letter)/.test(plan['Relation Name'] ?? ''),
  )
  expect(large).not.toEqual([])
  for (const plan of large) {
    expect([plan['Relation Name'], plan['Node Type']]).toEqual([
      plan['Relation Name'],
      expect.stringMatching(/^Index/) as string,
    ])
    if (plan['Relation Name']?.startsWith('audit_log')) {
      expect(plan['Index Cond']).toMatch(/organization_id = .*org_seq/)
    }
  }
})

test('what is found is right', async () => {
  const sinks = await listSinks(seeded.db, 'org_7', firstPage)
  expect(sinks).toHaveLength(20)
  // The entry 951 is the 51st of the tenth day.
  const at = new Date('2026-01-10T12:00:00Z').getTime()
  const [sink] = sinks
  expect(sink?.oldestEventId?.replace('-', '').slice(0, 12)).toBe(at.toString(16).padStart(12, '0'))
  expect(sink?.pendingEvents).toBe(50)
  expect(sinks.map(({ deadLetters }) => deadLetters).toSorted((a, b) => b - a)[0]).toBe(1000)
  const wanted = { organizationId: 'org_7', from: day(2, '12:00'), to: day(4, '12:00'), upTo: 950 }
  expect(await findRange(tx(), wanted)).toEqual({ first: 151, last: 350, day: '2026-01-02' })
})
