import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { createTestDatabase } from '#testing/test-database.ts'

import { connectDatabase, executeNamed, runNamed } from './database.ts'
import { transactNamed } from './transaction.ts'

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

const [makeNotes, addNote] = [
  { name: 'make_notes', text: 'create table note (text text)' },
  { name: 'add_note', text: `insert into note values ($1) returning current_setting('jit')` },
]
const notesIn = async (db: Parameters<typeof runNamed>[0]) =>
  (await runNamed(db, { name: 'list_notes', text: 'select text from note' }, [])).flat()

test('a transaction of named statements prepares them once, and its settings end with it', async () => {
  const { db } = await setUp(2000)
  await runNamed(db, makeNotes, [])
  await sql`set jit = on`.execute(db)
  for (const text of ['one', 'two']) {
    const settings = await transactNamed(db, { jit: 'off' }, (tx) => tx.run(addNote, [text]))
    expect(settings).toEqual([['off']])
  }
  expect(await runNamed(db, addNote, ['three'])).toEqual([['on']])
  expect(await notesIn(db)).toEqual(['one', 'two', 'three'])
  const { rows } =
    await sql`select name from pg_prepared_statements where name = 'add_note'`.execute(db)
  expect(rows).toHaveLength(1)
})

test('a transaction of named statements that fails leaves nothing, and its connection is usable', async () => {
  const { db } = await setUp(2000)
  await runNamed(db, makeNotes, [])
  const failing = { name: 'fail', text: 'select 1 / $1::integer' }
  const fail = transactNamed(db, {}, async (tx) => {
    await tx.run(addNote, ['one'])
    await tx.run(failing, [0])
  })
  await expect(fail).rejects.toThrow('division by zero')
  const hide = transactNamed(db, {}, async (tx) => {
    await tx.run(addNote, ['two'])
    await tx.run(failing, [0]).catch(() => undefined)
  })
  await expect(hide).rejects.toThrow('A statement of the transaction has failed.')
  expect(await notesIn(db)).toEqual([])
})

test('a transaction of named statements whose connection is lost leaves nothing, and the next has a new one', async () => {
  const { db, proxy } = await setUp(300)
  await runNamed(db, makeNotes, [])
  const lose = transactNamed(db, {}, async (tx) => {
    await tx.run(addNote, ['one'])
    proxy.swallow()
    await tx.run(addNote, ['two'])
  })
  await expect(lose).rejects.toThrow('Query read timeout')
  await transactNamed(db, {}, (tx) => tx.run(addNote, ['three']))
  expect(await notesIn(db)).toEqual(['three'])
})

test('a transaction of named statements that another one has stopped is repeated', async () => {
  const { db } = await setUp(2000)
  await sql`
    create function stop() returns void language plpgsql as $$
    begin raise exception 'stopped' using errcode = 'serialization_failure'; end $$`.execute(db)
  let attempts = 0
  const result = await transactNamed(db, {}, async (tx) => {
    if (++attempts < 3) await tx.run({ name: 'stop', text: 'select stop()' }, [])
    return 'done'
  })
  expect([result, attempts]).toEqual(['done', 3])
})

test('a template that is executed by name is prepared once, with its values', async () => {
  const { db } = await setUp(2000)
  const halve = (number: number) =>
    executeNamed(db, 'halve', sql<{ half: number }>`select ${number}::integer / 2 as half`)
  expect([await halve(8), await halve(6)]).toEqual([[{ half: 4 }], [{ half: 3 }]])
  const { rows } = await sql`select from pg_prepared_statements where name = 'halve'`.execute(db)
  expect(rows).toHaveLength(1)
  const inside = sql<{ half: number }>`select 1 as half`
  expect(await db.transaction().execute((tx) => executeNamed(tx, 'halve', inside))).toEqual([
    { half: 1 },
  ])
})
