import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'
import { onTestFinished } from 'vitest'

import { connectDatabase, type DatabaseOptions, type Db } from '#platform/database.ts'

import { connectServer, templateName } from './migrated-template.ts'
import { databaseUrl } from './servers.ts'

/** How long a disposal waits for connections to close; long enough for a loaded machine. */
const closingMs = 10_000

/** A pool for tests that are not about waiting for connections: a loaded machine may take its time. */
export const connectPatiently = (options: DatabaseOptions): Db =>
  connectDatabase({ ...options, connectTimeoutMs: 30_000 })

/** A private, already migrated database, copied from the template in a few dozen milliseconds. */
export async function createTestDatabase({ waitMs = closingMs } = {}) {
  const name = `gatehouse_test_${randomUUID().replaceAll('-', '').slice(0, 20)}`
  const template = await templateName()
  await onServer((server) =>
    sql`create database ${sql.id(name)} template ${sql.id(template)}`.execute(server),
  )
  const url = databaseUrl(name)
  const db = connectPatiently({ url, poolSize: 5 })
  return {
    url,
    db,
    async [Symbol.asyncDispose]() {
      await db.destroy()
      await onServer((server) => dropDatabase(server, name, waitMs))
    },
  }
}

/** A private database without tables, for tests of migrations; dropped when the test ends. */
export async function openEmptyDatabase() {
  const name = `gatehouse_test_${randomUUID().replaceAll('-', '').slice(0, 20)}`
  const server = connectServer()
  await sql`create database ${sql.id(name)}`.execute(server)
  const connect = () =>
    connectPatiently({ url: databaseUrl(name), poolSize: 2, statementTimeoutMs: 0 })
  const db = connect()
  onTestFinished(async () => {
    await db.destroy()
    await dropDatabase(server, name)
    await server.destroy()
  })
  return { db, connect, url: databaseUrl(name) }
}

/**
 * Drops a database after its last connection has closed. A pool that has ended still has open sockets for a
 * moment; dropping the database under them reports 57P01 on a connection without a listener, which ends the
 * whole test run. A connection that does not close belongs to a test that does not clean up, which fails.
 */
async function dropDatabase(server: Db, name: string, waitMs = closingMs) {
  const open = await waitUntilClosed(server, name, waitMs)
  await sql`drop database ${sql.id(name)} with (force)`.execute(server)
  if (open.length === 0) return
  throw new Error(
    `The test ended with ${open.length} open connections to its database. End every pool and stop every house before the database is dropped. Last statements: ${open.map(({ query }) => query.slice(0, 80)).join(' | ')}`,
  )
}

async function waitUntilClosed(server: Db, name: string, waitMs: number) {
  const deadline = performance.now() + waitMs
  for (;;) {
    const { rows } = await sql<{ query: string }>`
      select query from pg_stat_activity
      where datname = ${name} and backend_type = 'client backend'`.execute(server)
    if (rows.length === 0 || performance.now() > deadline) return rows
    await sleep(5)
  }
}

async function onServer<T>(work: (server: Db) => Promise<T>) {
  const server = connectServer()
  try {
    return await work(server)
  } finally {
    await server.destroy()
  }
}
