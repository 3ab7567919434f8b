import { hash } from 'node:crypto'
import type { Socket } from 'node:net'

import { Kysely, PostgresDialect, type RawBuilder, type Transaction } from 'kysely'
import pg from 'pg'

import type { DB } from './database-types.ts'

/** Runs queries, inside or outside a transaction. */
export type Db = Kysely<DB>
/** Runs queries inside a transaction. Writes take this type, so that they cannot run outside one. */
export type Tx = Transaction<DB>

export type DatabaseOptions = {
  url: string
  poolSize: number
  /** 0 switches the timeout off, for migrations. */
  statementTimeoutMs?: number
  /** How long a query waits for a connection; two seconds by default, 0 for ever. */
  connectTimeoutMs?: number
  /** How long a statement waits for a lock; two seconds by default. */
  lockTimeoutMs?: number
  onProblem?: (error: Error) => void
}

/** Short, because all queries on a table queue behind a migration that waits for its lock; it is retried. */
const migrationLockMs = 3000

type Callback = (error: Error | undefined, result: unknown) => void

/**
 * Drops its connection after a read timeout, and when the server has become a read-only standby. The driver
 * would return such a connection to the pool as healthy, and the pool would hand it out again and again.
 *
 * The read timeout is implemented here: with the driver's own promises and `query_timeout` every result
 * stays alive until the next major garbage collection, which made each minor one ten times longer.
 */
class ImpatientClient extends pg.Client {
  readonly #readTimeoutMs: number

  constructor(options: pg.ClientConfig & { readTimeoutMs?: number } = {}) {
    super(options)
    this.#readTimeoutMs = options.readTimeoutMs ?? 0
  }

  // The driver declares overloads; Kysely only ever passes a text with values, and the functions below a named statement.
  override query(...args: never[]): never {
    const [text, values] = args as unknown as [text: string | pg.QueryConfig, values?: unknown[]]
    return new Promise((resolve, reject) => {
      const onTimeout = () => finish(new Error('Query read timeout'), undefined)
      const timer = this.#readTimeoutMs > 0 ? setTimeout(onTimeout, this.#readTimeoutMs) : undefined
      const finish: Callback = (error, result) => {
        clearTimeout(timer)
        if (!error) return resolve(result)
        this.#dropIfUnusable(error)
        return reject(error)
      }
      ;(super.query as (text: unknown, values: unknown[] | undefined, done: Callback) => void)(
        text,
        typeof text === 'string' ? (values ?? []) : undefined,
        finish,
      )
    }) as never
  }

  #dropIfUnusable(error: Error) {
    const isReadOnly = 'code' in error && error.code === '25006'
    if (error.message !== 'Query read timeout' && !isReadOnly) return
    const inside = this as unknown as { connection: { stream: Socket }; _queryable: boolean }
    // Logged here, because inside a transaction the caller only sees that the rollback failed.
    this.emit('error', error)
    inside._queryable = false // makes the pool discard the client when it is released
    inside.connection.stream.destroy()
  }
}

/** A pool in which every wait has a timeout: for a connection, a lock, a statement, an idle transaction. */
export function connectDatabase(options: DatabaseOptions): Db {
  const { url, poolSize, statementTimeoutMs = 5000, onProblem = () => undefined } = options
  const lockMs = statementTimeoutMs > 0 ? Math.min(statementTimeoutMs, 2000) : migrationLockMs
  const pool = new pg.Pool({
    Client: ImpatientClient,
    connectionString: url,
    max: poolSize,
    application_name: 'gatehouse',
    connectionTimeoutMillis: options.connectTimeoutMs ?? 2000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    statement_timeout: statementTimeoutMs,
    // Longer than the server's own timeout: it only matters when the network loses the answer.
    ...(statementTimeoutMs > 0 && { readTimeoutMs: statementTimeoutMs + 1000 }),
    lock_timeout: options.lockTimeoutMs ?? lockMs,
    // An idle transaction that has written would hold back every reader of the change log.
    idle_in_transaction_session_timeout: 5000,
  })
  // A broken connection is replaced at the next query. Without listeners its error would end the process;
  // the pool's listener covers idle connections only, so each connection needs its own as well.
  pool.on('error', onProblem)
  pool.on('connect', (client) => client.on('error', onProblem))
  return new PooledKysely(pool)
}

class PooledKysely extends Kysely<DB> {
  readonly pool: pg.Pool

  constructor(pool: pg.Pool) {
    super({ dialect: new PostgresDialect({ pool }) })
    this.pool = pool
  }

  /** Kysely leaves a pool open that it has not used itself. */
  override async destroy() {
    await super.destroy()
    if (!this.pool.ending) await this.pool.end()
  }
}

/**
 * A statement that is prepared once per connection: parsing and planning a large one takes the database longer than
 * executing it. The name belongs to this text: a changed text needs no new name, because connections do not outlive
 * their process.
 */
export type NamedStatement = { readonly name: string; readonly text: string }

/**
 * Runs a named statement on a connection of the pool, outside transactions. Returns its rows as arrays, in the order of
 * the columns.
 */
export async function runNamed<Row extends unknown[]>(
  db: Db,
  statement: NamedStatement,
  values: unknown[],
): Promise<Row[]> {
  const client = await takeClient(db)
  try {
    return await queryNamed<Row>(client, statement, values)
  } finally {
    client.release()
  }
}

/**
 * Runs an `sql` template as a named statement, or without the name where `db` is a transaction or one connection: for what is asked again every few seconds. Its text must
 * be the same each time, and name its columns: the result of `*` changes with a migration, which a prepared one refuses.
 */
export async function executeNamed<Row extends object>(
  db: Db,
  name: string,
  query: RawBuilder<Row>,
): Promise<Row[]> {
  if (!(db instanceof PooledKysely)) return (await query.execute(db)).rows
  const { sql: text, parameters } = query.compile(db)
  const client = await db.pool.connect()
  try {
    const { rows } = await client.query<Row>({ name, text, values: [...parameters] })
    return rows
  } finally {
    client.release()
  }
}

/** As `executeNamed`, in a transaction of its own with settings. The name follows from the text: there must be few texts. */
export async function executePrepared<Row extends object>(
  db: Db,
  settings: LocalSettings,
  query: RawBuilder<Row>,
): Promise<Row[]> {
  if (!(db instanceof PooledKysely)) return (await query.execute(db)).rows
  const { sql: text, parameters } = query.compile(db)
  const name = `prepared_${hash('sha256', text).slice(0, 16)}`
  return runInTransaction(db, settings, async (client) => {
    const { rows } = await client.query<Row>({ name, text, values: [...parameters] })
    return rows
  })
}

/** A transaction whose statements are named. Their rows are arrays, as those of `runNamed`. */
export type NamedTx = {
  run<Row extends unknown[]>(statement: NamedStatement, values: unknown[]): Promise<Row[]>
}

/** Settings of PostgreSQL that hold until the transaction ends. */
export type LocalSettings = {
  readonly enable_sort?: 'off'
  readonly jit?: 'off'
  readonly lock_timeout?: '500ms'
  readonly plan_cache_mode?: 'force_generic_plan'
  readonly statement_timeout?: '0'
}

/**
 * Runs named statements in one transaction, on one connection of the pool. `transactNamed` does so, too, and repeats what
 * can be repeated.
 */
export const runNamedTransaction = <T>(
  db: Db,
  settings: LocalSettings,
  work: (tx: NamedTx) => Promise<T>,
): Promise<T> =>
  runInTransaction(db, settings, (client) =>
    work({ run: (statement, values) => queryNamed(client, statement, values) }),
  )

async function runInTransaction<T>(
  db: Db,
  settings: LocalSettings,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await takeClient(db)
  let isLost: Error | undefined
  try {
    const set = Object.entries(settings).map(([name, value]) => `; set local ${name} = '${value}'`)
    await client.query(`begin${set.join('')}`)
    const result = await work(client)
    const { command } = await client.query('commit')
    // PostgreSQL answers so, without an error, if `work` has caught the error of a statement.
    if (command !== 'COMMIT') throw new Error('A statement of the transaction has failed.')
    return result
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => (isLost = failure))
    throw error
  } finally {
    // A connection whose transaction could not be ended is closed: its next user would find itself inside of it.
    client.release(isLost)
  }
}

function takeClient(db: Db): Promise<pg.PoolClient> {
  if (!(db instanceof PooledKysely)) throw new Error('a named statement needs a pool')
  return db.pool.connect()
}

async function queryNamed<Row extends unknown[]>(
  client: pg.PoolClient,
  { name, text }: NamedStatement,
  values: unknown[],
): Promise<Row[]> {
  const { rows } = await client.query<Row>({ name, text, values, rowMode: 'array' })
  return rows
}

/** Whether a statement gave up waiting for a lock of another transaction. */
export const isLockTimeout = (error: unknown): boolean => hasCode(error, '55P03')

/** Whether the database ended a transaction, because it and another one were waiting for each other. */
export const isDeadlock = (error: unknown): boolean => hasCode(error, '40P01')

/** Whether a statement would have written a row whose key is there already. */
export const isUniqueViolation = (error: unknown): boolean => hasCode(error, '23505')

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
