import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

import { runGatehouse } from './run-script.ts'

/** The servers of a developer's machine; the tests read the same variables. */
export const serverUrl =
  process.env['TEST_DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres'
export const redisUrl = process.env['TEST_REDIS_URL'] ?? 'redis://127.0.0.1:6379'

/** A copy of a migrated database of the usual server, which takes a fraction of migrating a new one. Its owner drops it. */
export async function copyDatabase(purpose: string, template: string) {
  const name = nameFor(purpose)
  await onServer(serverUrl, (client) =>
    client.query(`create database ${name} template ${client.escapeIdentifier(template)}`),
  )
  return databaseOf(serverUrl, name)
}

const nameFor = (purpose: string) => `gatehouse_${purpose}_${randomBytes(6).toString('hex')}`

function databaseOf(server: string, name: string) {
  const url = new URL(server)
  url.pathname = `/${name}`
  const drop = () => onServer(server, (client) => dropDatabase(client, name))
  return { name, url: url.toString(), [Symbol.asyncDispose]: drop }
}

/** A fresh database with all migrations applied; its owner drops it. */
export async function createMigratedDatabase(
  purpose: string,
  server = serverUrl,
  signal?: AbortSignal,
) {
  const name = nameFor(purpose)
  await onServer(server, (client) => client.query(`create database ${name}`))
  const database = databaseOf(server, name)
  try {
    signal?.throwIfAborted()
    const environment = { ...process.env, DATABASE_URL: database.url }
    await runGatehouse(['migrate'], { environment, signal })
  } catch (error) {
    // The first error says what went wrong; a second one would hide it.
    await database[Symbol.asyncDispose]().catch(() => undefined)
    throw error
  }
  return database
}

/** How long a drop waits for connections to close: those of a killed process are noticed late. */
const closingMs = 5000

/** Drops a database after its last connection has closed; reports those that did not close. */
async function dropDatabase(client: pg.Client, name: string) {
  const open = `select query from pg_stat_activity where datname = '${name}' and backend_type = 'client backend'`
  const deadline = performance.now() + closingMs
  let { rows } = await client.query<{ query: string }>(open)
  while (rows.length > 0 && performance.now() < deadline) {
    await sleep(20)
    ;({ rows } = await client.query<{ query: string }>(open))
  }
  for (const { query } of rows) console.error(`${name} is dropped while in use: ${query}`)
  await client.query(`drop database if exists ${name} with (force)`)
}

async function onServer(server: string, work: (client: pg.Client) => Promise<unknown>) {
  if (!URL.canParse(server)) throw new Error('TEST_DATABASE_URL is not a URL.')
  const client = new pg.Client({
    connectionString: server,
    connectionTimeoutMillis: 3000,
    query_timeout: 60_000,
  })
  // A connection that breaks between two queries would end the process otherwise.
  client.on('error', () => undefined)
  try {
    await client.connect()
  } catch (error) {
    throw new Error(
      `PostgreSQL at ${new URL(server).host} cannot be used (${reasonOf(error)}). Start it, or set TEST_DATABASE_URL to a server where databases may be created.`,
      { cause: error },
    )
  }
  try {
    await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Where a host name has several addresses, the error has a code and no message. */
function reasonOf(error: unknown): string {
  const { message = '', code = '' } = error as { message?: string; code?: string }
  return message || code || String(error)
}
