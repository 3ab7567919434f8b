import { Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'

import type { DB } from './database-types.ts'

/** Anything that can run a query. */
export type Db = Kysely<DB>
/** A query runner inside a transaction; writes ask for this one, so they cannot be run outside. */
export type Tx = Transaction<DB>

export type DatabaseOptions = {
  url: string
  poolSize: number
  /** 0 switches it off, for migrations. */
  statementTimeoutMs?: number
  onProblem?: (error: Error) => void
}

/** A pool whose every wait has an end: for a connection, a lock, a statement, a forgotten transaction. */
export function connectDatabase(options: DatabaseOptions): Db {
  const { url, poolSize, statementTimeoutMs = 5000, onProblem = () => undefined } = options
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    application_name: 'gatehouse',
    connectionTimeoutMillis: 2000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    statement_timeout: statementTimeoutMs,
    // Longer than the server's own limit: it ends the wait when the network swallows the answer.
    ...(statementTimeoutMs > 0 && { query_timeout: statementTimeoutMs + 1000 }),
    lock_timeout: Math.min(statementTimeoutMs, 2000),
    // A writer that forgets its transaction would hold back every reader of the log.
    idle_in_transaction_session_timeout: 5000,
  })
  // A connection that breaks is replaced at the next query. Without listeners it would end the process:
  // the pool hears of idle connections only, so those in use need one of their own.
  pool.on('error', onProblem)
  pool.on('connect', (client) => client.on('error', onProblem))
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }) })
}
