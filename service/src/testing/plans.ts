import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'

import type { DB } from '#platform/database-types.ts'

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Plans?: Plan[]
}

/** A database that remembers what it was asked, so that its plans can be looked at. */
export function observeQueries(pool: pg.Pool) {
  const executed: CompiledQuery[] = []
  const dialect = new PostgresDialect({ pool })
  const db = new Kysely<DB>({ dialect, log: ({ query }) => void executed.push(query) })

  /** How PostgreSQL runs what `run` asks: every node of the plan of every statement that reads. */
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
      plans.push(...flat(rows[0]?.['QUERY PLAN'][0].Plan))
    }
    return plans
  }
  return { db, plansOf }
}

const flat = (plan: Plan | undefined): Plan[] =>
  plan ? [plan, ...(plan.Plans ?? []).flatMap(flat)] : []
