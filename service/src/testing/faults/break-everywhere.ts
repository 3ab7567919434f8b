import { sql } from 'kysely'
import { expect } from 'vitest'

import type { Db } from '#platform/database.ts'
import type { createTestApi } from '#testing/test-api.ts'

type Api = Pick<Awaited<ReturnType<typeof createTestApi>>, 'db' | 'tap'>

type Change<State> = {
  /** Puts in place what the change starts from. */
  prepare: () => Promise<State>
  /** Makes the change, and returns the status of its answer. */
  attempt: (state: State) => Promise<number>
  /** Throws unless all of the change is there, or nothing of it. */
  check: (state: State, outcome: 'old' | 'new') => Promise<void>
}

/**
 * Makes a change again and again, and each time its connection breaks before another statement of its transaction, and at last
 * behind the commit. Returns the statements. The API has to be tapped.
 */
export async function breakEverywhere<State>({ db, tap }: Api, change: Change<State>) {
  if (!tap) throw new Error('the API is not tapped')
  const { statements: seen } = tap
  /** Whether the connection broke there; false: the transaction has fewer statements. */
  async function breakAt(statement: number, when: 'before' | 'after'): Promise<boolean> {
    const state = await change.prepare()
    tap!.arm({ statement, when, kill: null })
    const status = await change.attempt(state)
    const isBroken = status >= 500
    if (isBroken) await untilUndone(db)
    await change.check(state, isBroken && when === 'before' ? 'old' : 'new')
    if (isBroken || seen.length === statement) return isBroken
    // The process had a transaction of its own at that moment, and the tap saw that one.
    return breakAt(statement, when)
  }
  let statement = 0
  while (await breakAt(statement, 'before')) statement++
  const statements = [...seen]
  expect([statements[0]?.toLowerCase(), statements.at(-1)?.toLowerCase()]).toEqual([
    'begin',
    'commit',
  ])
  expect(await breakAt(statement - 1, 'after')).toBe(true)
  return statements
}

/** PostgreSQL undoes a transaction a moment after its connection has broken. */
async function untilUndone(db: Db) {
  const countOpen = async () => {
    const { rows } = await sql<{ open: number }>`
      select count(*)::integer as open from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`.execute(
      db,
    )
    return rows[0]?.open
  }
  await expect.poll(countOpen, { interval: 5, timeout: 10_000 }).toBe(0)
}
