import { readFile } from 'node:fs/promises'

import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'

import type { DB } from '#platform/database-types.ts'

import { createTestDatabase } from './test-database.ts'

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Plans?: Plan[]
}

/** A test database with the rows of SQL files of this folder. It records its statements. */
export async function openSeeded(...files: string[]) {
  const database = await createTestDatabase()
  const pool = new pg.Pool({ connectionString: database.url, max: 2 })
  for (const file of files) await pool.query(await readFile(new URL(file, import.meta.url), 'utf8'))
  const { db, plansOf } = observeQueries(pool)
  return {
    db,
    /** The same database, whose statements are not recorded. */
    plainDb: database.db,
    plansOf,
    async [Symbol.asyncDispose]() {
      await db.destroy()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** A database that records its statements, so that their plans can be examined. */
function observeQueries(pool: pg.Pool) {
  // Without this listener, an idle connection that the server closes would end the process.
  pool.on('error', () => undefined)
  const executed: CompiledQuery[] = []
  const dialect = new PostgresDialect({ pool })
  const db = new Kysely<DB>({ dialect, log: ({ query }) => void executed.push(query) })

  /** Every plan node of every read statement that `run` executes. */
  async function plansOf(run: () => Promise<unknown>): Promise<Plan[]> {
    executed.length = 0
    await run()
    const reads = executed.filter((query) => /^\s*(select|with)\b/.test(query.sql))
    const plans: Plan[] = []
    for (const { sql, parameters } of reads) {
      const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
        `explain (format json) ${sql}`,
        [...parameters],
      )
      plans.push(...flatten(rows[0]?.['QUERY PLAN'][0].Plan))
    }
    return plans
  }
  return { db, plansOf }
}

const flatten = (plan: Plan | undefined): Plan[] =>
  plan ? [plan, ...(plan.Plans ?? []).flatMap(flatten)] : []
