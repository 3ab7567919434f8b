import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { connectServer } from '#testing/migrated-template.ts'
import { databaseUrl } from '#testing/servers.ts'
import { dropDatabase } from '#testing/test-database.ts'

import { connectDatabase } from './database.ts'
import { migrate, missingMigrations } from './migrations.ts'

async function emptyDatabase() {
  const name = `gatehouse_test_${randomBytes(8).toString('hex')}`
  const server = connectServer()
  await sql`create database ${sql.id(name)}`.execute(server)
  const connect = () =>
    connectDatabase({ url: databaseUrl(name), poolSize: 2, statementTimeoutMs: 0 })
  const db = connect()
  onTestFinished(async () => {
    await db.destroy()
    await dropDatabase(server, name)
    await server.destroy()
  })
  return { db, connect }
}

test('several processes that migrate at once apply everything exactly once', async () => {
  const { db, connect } = await emptyDatabase()
  const missing = await missingMigrations(db)
  const others = Array.from({ length: 4 }, connect)
  const applied = await Promise.all(others.map((each) => migrate(each)))
  await Promise.all(others.map((each) => each.destroy()))
  expect(applied.flat().toSorted((one, two) => (one < two ? -1 : 1))).toEqual(missing)
  expect(await missingMigrations(db)).toEqual([])
})

test('a migration that fails leaves nothing behind and says which', async () => {
  const { db } = await emptyDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, '0001_good.sql'), 'create table good (id int);')
  await writeFile(join(folder, '0002_bad.sql'), 'create table half (id int); select nonsense;')
  const files = pathToFileURL(`${folder}/`)
  await expect(migrate(db, files)).rejects.toThrow('nonsense')
  expect(await missingMigrations(db, files)).toEqual(['0001_good.sql', '0002_bad.sql'])
  const { rows } = await sql`select to_regclass('half') as half`.execute(db)
  expect(rows).toEqual([{ half: null }])
})
