import { readFile } from 'node:fs/promises'

import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'

import type { DB } from '#platform/database-types.ts'
import { preparedPages } from '#platform/keyset.ts'

import { createTestDatabase } from './test-database.ts'

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Plans?: Plan[]
}

/** A file of this folder, and how many rows it makes, if that is not always the same. */
type Seed = string | { file: string; events: number }

/** A test database with the rows of SQL files of this folder. It records its statements. */
export async function openSeeded(...seeds: Seed[]) {
  const database = await createTestDatabase()
  const pool = new pg.Pool({ connectionString: database.url, max: 2 })
  for (const seed of seeds) {
    const { file, events } = typeof seed === 'string' ? { file: seed, events: 0 } : seed
    const text = await readFile(new URL(file, import.meta.url), 'utf8')
    await pool.query(events > 0 ? `set seed.events = '${events}'; ${text}` : text)
  }
  const { db, plansOf, keptPlansOf } = observeQueries(pool)
  return {
    db,
    /** The same database, whose statements are not recorded. */
    plainDb: database.db,
    plansOf,
    keptPlansOf,
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

  async function readsOf(run: () => Promise<unknown>) {
    executed.length = 0
    await run()
    return executed.filter((query) => /^\s*(select|with)\b/.test(query.sql))
  }

  /** Every plan node of every read statement that `run` executes. */
  async function plansOf(run: () => Promise<unknown>): Promise<Plan[]> {
    const reads = await readsOf(run)
    const plans: Plan[] = []
    for (const { sql, parameters } of reads) {
      const { rows } = await pool.query<Explained>(`explain (format json) ${sql}`, [...parameters])
      plans.push(...flatten(rows[0]?.['QUERY PLAN'][0].Plan))
    }
    return plans
  }
  /** The same of the plans that a connection keeps for prepared pages: they are made without knowing the parameters. */
  async function keptPlansOf(run: () => Promise<unknown>): Promise<Plan[]> {
    const reads = await readsOf(run)
    const client = await pool.connect()
    try {
      for (const [name, value] of Object.entries(preparedPages)) {
        await client.query(`set ${name} = '${value}'`)
      }
      const plans: Plan[] = []
      for (const { sql, parameters } of reads) {
        await client.query(`prepare kept as ${sql}`)
        const given = parameters.map((each) => pg.escapeLiteral(String(each))).join(', ')
        const { rows } = await client.query<Explained>(
          `explain (format json) execute kept (${given})`,
        )
        plans.push(...flatten(rows[0]?.['QUERY PLAN'][0].Plan))
        await client.query('deallocate kept')
      }
      return plans
    } finally {
      client.release(true)
    }
  }
  return { db, plansOf, keptPlansOf }
}

type Explained = { 'QUERY PLAN': [{ Plan: Plan }] }

const flatten = (plan: Plan | undefined): Plan[] =>
  plan ? [plan, ...(plan.Plans ?? []).flatMap(flatten)] : []
