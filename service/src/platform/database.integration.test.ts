import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { createTestDatabase } from '#testing/test-database.ts'

import { connectDatabase, runNamed } from './database.ts'

/** Forwards bytes until it is switched to discard those of its open connections, without closing them. */
async function createSwallowingProxy(databaseUrl: string) {
  const url = new URL(databaseUrl)
  const target = { host: url.hostname, port: Number(url.port || 5432) }
  const swallowed = new Set<Socket>()
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(target)
    sockets.add(near)
    near.on('data', (chunk) => swallowed.has(near) || far.write(chunk))
    far.on('data', (chunk) => swallowed.has(near) || near.write(chunk))
    for (const socket of [near, far]) socket.on('error', () => undefined)
    near.on('close', () => far.destroy())
    far.on('close', () => swallowed.has(near) || near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: url.toString(),
    swallow: () => {
      for (const socket of sockets) swallowed.add(socket)
    },
  }
}

async function setUp(statementTimeoutMs: number) {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const proxy = await createSwallowingProxy(database.url)
  const problems: Error[] = []
  const db = connectDatabase({
    url: proxy.url,
    poolSize: 1,
    statementTimeoutMs,
    onProblem: (error) => problems.push(error),
  })
  onTestFinished(() => db.destroy())
  return { db, proxy, problems, direct: database }
}

const ping = sql`select 1`

test('a connection whose answers never come is dropped, and the next query gets a new one', async () => {
  const { db, proxy } = await setUp(300)
  await ping.execute(db)
  proxy.swallow()
  await expect(ping.execute(db)).rejects.toThrow('Query read timeout')
  await ping.execute(db)
})

test('inside a transaction as well: nothing is written through a connection of unknown state', async () => {
  const { db, proxy } = await setUp(300)
  const work = db.transaction().execute(async (tx) => {
    await ping.execute(tx)
    proxy.swallow()
    await ping.execute(tx)
  })
  await expect(work).rejects.toThrow(/timeout|terminated|not queryable/)
  await ping.execute(db)
})

test('a server that became a standby loses its connections, so that the new primary is found', async () => {
  const { db } = await setUp(2000)
  const pid = async () =>
    (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)).rows[0]?.pid
  const first = await pid()
  await sql`set default_transaction_read_only = on`.execute(db)
  await expect(sql`create table x (id int)`.execute(db)).rejects.toMatchObject({ code: '25006' })
  expect(await pid()).not.toBe(first)
})

test('an idle transaction is ended by the server, and the process survives', async () => {
  const { db, problems } = await setUp(5000)
  const work = db.transaction().execute(async (tx) => {
    await sql`set local idle_in_transaction_session_timeout = 200`.execute(tx)
    await new Promise((resolve) => setTimeout(resolve, 600))
    await ping.execute(tx)
  })
  await expect(work).rejects.toThrow(/terminat|idle-in-transaction|not queryable/)
  expect(problems.length).toBeGreaterThan(0)
  await ping.execute(db)
})

test('waits for a lock have a timeout, which can be set shorter', async () => {
  const { db, direct } = await setUp(5000)
  const impatient = connectDatabase({ url: direct.url, poolSize: 1, lockTimeoutMs: 200 })
  onTestFinished(() => impatient.destroy())
  const shown = async (from: typeof db) => (await sql`show lock_timeout`.execute(from)).rows
  expect(await shown(db)).toEqual([{ lock_timeout: '2s' }])
  expect(await shown(impatient)).toEqual([{ lock_timeout: '200ms' }])
})

const double = { name: 'double', text: 'select 2 * $1::integer, current_setting($2)' }

test('a named statement is prepared once per connection, and again on the next connection', async () => {
  const { db, proxy } = await setUp(300)
  const prepared = async () => (await sql`select name from pg_prepared_statements`.execute(db)).rows
  for (const number of [1, 2, 3]) {
    expect(await runNamed(db, double, [number, 'application_name'])).toEqual([
      [number * 2, 'gatehouse'],
    ])
  }
  expect(await prepared()).toEqual([{ name: 'double' }])
  proxy.swallow()
  await expect(runNamed(db, double, [4, 'application_name'])).rejects.toThrow('Query read timeout')
  expect(await prepared()).toEqual([])
  expect(await runNamed(db, double, [5, 'application_name'])).toEqual([[10, 'gatehouse']])
})

test('a named statement that fails leaves its connection usable', async () => {
  const { db } = await setUp(2000)
  await expect(runNamed(db, double, [1, 'no such setting'])).rejects.toThrow('unrecognized')
  expect(await runNamed(db, double, [1, 'application_name'])).toEqual([[2, 'gatehouse']])
})

test('a pool that has only run named statements is closed with its database', async () => {
  const { direct } = await setUp(2000)
  const db = connectDatabase({ url: direct.url, poolSize: 1 })
  await runNamed(db, double, [1, 'application_name'])
  await db.destroy()
  await expect(runNamed(db, double, [1, 'application_name'])).rejects.toThrow('after calling end')
})
