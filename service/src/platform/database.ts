import type { Socket } from 'node:net'

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
  /** How long a statement waits for a lock; unless told otherwise, two seconds at most. */
  lockTimeoutMs?: number
  onProblem?: (error: Error) => void
}

/** A migration that waits for a lock makes everybody else wait behind it: better to try again. */
const migrationLockMs = 3000

type Callback = (error: Error | undefined, result: unknown) => void

/**
 * Drops its connection when an answer does not come, or when the server has become a standby. The driver
 * would give such a connection back to the pool as healthy, and the pool would hand it out again and again.
 *
 * The wait for an answer is ours too: the driver's own promises and `query_timeout` keep every result
 * alive until the next major collection, and copying them made each minor one ten times longer.
 */
class ImpatientClient extends pg.Client {
  readonly #readTimeoutMs: number

  constructor(options: pg.ClientConfig & { readTimeoutMs?: number } = {}) {
    super(options)
    this.#readTimeoutMs = options.readTimeoutMs ?? 0
  }

  // The driver's signatures are overloads; all that comes here is a text with values.
  override query(...args: never[]): never {
    const [text, values] = args as unknown as [text: string, values?: unknown[]]
    return new Promise((resolve, reject) => {
      const late = () => finish(new Error('Query read timeout'), undefined)
      const timer = this.#readTimeoutMs > 0 ? setTimeout(late, this.#readTimeoutMs) : undefined
      const finish: Callback = (error, result) => {
        clearTimeout(timer)
        if (!error) return resolve(result)
        this.#dropIfHopeless(error)
        return reject(error)
      }
      ;(super.query as (text: string, values: unknown[], done: Callback) => void)(
        text,
        values ?? [],
        finish,
      )
    }) as never
  }

  #dropIfHopeless(error: Error) {
    const isReadOnly = 'code' in error && error.code === '25006'
    if (error.message !== 'Query read timeout' && !isReadOnly) return
    const inside = this as unknown as { connection: { stream: Socket }; _queryable: boolean }
    // Where this comes from inside a transaction, its caller only sees that the rollback failed.
    this.emit('error', error)
    inside._queryable = false // the pool takes it back only to throw it away
    inside.connection.stream.destroy()
  }
}

/** A pool whose every wait has an end: for a connection, a lock, a statement, a forgotten transaction. */
export function connectDatabase(options: DatabaseOptions): Db {
  const { url, poolSize, statementTimeoutMs = 5000, onProblem = () => undefined } = options
  const lockMs = statementTimeoutMs > 0 ? Math.min(statementTimeoutMs, 2000) : migrationLockMs
  const pool = new pg.Pool({
    Client: ImpatientClient,
    connectionString: url,
    max: poolSize,
    application_name: 'gatehouse',
    connectionTimeoutMillis: 2000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    statement_timeout: statementTimeoutMs,
    // Longer than the server's own limit: it ends the wait when the network swallows the answer.
    ...(statementTimeoutMs > 0 && { readTimeoutMs: statementTimeoutMs + 1000 }),
    lock_timeout: options.lockTimeoutMs ?? lockMs,
    // A writer that forgets its transaction would hold back every reader of the log.
    idle_in_transaction_session_timeout: 5000,
  })
  // A connection that breaks is replaced at the next query. Without listeners it would end the process:
  // the pool hears of idle connections only, so those in use need one of their own.
  pool.on('error', onProblem)
  pool.on('connect', (client) => client.on('error', onProblem))
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }) })
}
