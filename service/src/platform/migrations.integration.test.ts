import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { openEmptyDatabase } from '#testing/test-database.ts'

import { migrationsFolder } from './assets.ts'
import { migrate, readSchemaState } from './migrations.ts'

test('several processes that migrate at once apply everything exactly once', async () => {
  const { db, connect } = await openEmptyDatabase()
  const { missing } = await readSchemaState(db)
  const others = Array.from({ length: 4 }, connect)
  const applied = await Promise.all(others.map((each) => migrate(each)))
  await Promise.all(others.map((each) => each.destroy()))
  const names = applied.flatMap((each) => each.applied)
  expect(names.toSorted((one, two) => (one < two ? -1 : 1))).toEqual(missing)
  expect((await readSchemaState(db)).missing).toEqual([])
})

test('a migration that fails leaves nothing behind and says which', async () => {
  const { db } = await openEmptyDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, '0001_good.sql'), 'create table good (id int);')
  await writeFile(join(folder, '0002_bad.sql'), 'create table half (id int); select nonsense;')
  const files = pathToFileURL(`${folder}/`)
  await expect(migrate(db, files)).rejects.toThrow('nonsense')
  const { missing } = await readSchemaState(db, files)
  expect(missing).toEqual(['0001_good.sql', '0002_bad.sql'])
  const { rows } = await sql`select to_regclass('half') as half`.execute(db)
  expect(rows).toEqual([{ half: null }])
})

/** The migrations of a release that has these in addition to ours. */
async function releaseWith(files: Record<string, string>): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await cp(migrationsFolder, folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return pathToFileURL(`${folder}/`)
}

const added = 'create table added (id int);'

test('a newer schema that works with this release is left as it is', async () => {
  const { db } = await openEmptyDatabase()
  const { release } = await readSchemaState(db)
  const next = await releaseWith({
    '9001_next.sql': `-- Works with releases since ${release}\n${added}`,
  })
  expect((await migrate(db, next)).applied).toContain('9001_next.sql')
  expect(await migrate(db)).toEqual({ applied: [], newer: ['9001_next.sql'] })
  expect(await readSchemaState(db)).toEqual({
    release,
    missing: [],
    newer: ['9001_next.sql'],
    oldestRelease: release,
  })
})

test('a newer schema that does not is refused, also after a later migration that demands less', async () => {
  const { db } = await openEmptyDatabase()
  const { release } = await readSchemaState(db)
  const strict = { '9001_strict.sql': added }
  const next = await releaseWith(strict)
  await migrate(db, next)
  await expect(migrate(db)).rejects.toThrow('works with releases since 9001')
  const last = await releaseWith({
    ...strict,
    '9002_lax.sql': `-- Works with releases since ${release}\ncreate table more (id int);`,
  })
  await migrate(db, last)
  await expect(migrate(db)).rejects.toThrow('works with releases since 9001')
  expect(await migrate(db, next)).toEqual({ applied: [], newer: ['9002_lax.sql'] })
})

test('an older release that migrates while a newer one does finds nothing to do', async () => {
  const { db, connect } = await openEmptyDatabase()
  const { release } = await readSchemaState(db)
  const next = await releaseWith({
    '9001_next.sql': `-- Works with releases since ${release}\n${added}`,
  })
  const others = Array.from({ length: 6 }, connect)
  const work = others.map((each, index) => migrate(each, index % 2 === 0 ? next : undefined))
  const outcomes = await Promise.all(work)
  await Promise.all(others.map((each) => each.destroy()))
  const applied = outcomes.flatMap((each) => each.applied)
  expect(new Set(applied).size).toBe(applied.length)
  expect((await readSchemaState(db, next)).missing).toEqual([])
})

test('a migration that the database ends because it and a request wait for each other is tried again', async () => {
  const { db, connect } = await openEmptyDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const files = pathToFileURL(`${folder}/`)
  await writeFile(
    join(folder, '0001_tables.sql'),
    'create table one (id int); create table two (id int);',
  )
  await migrate(db, files)
  const both = 'alter table one add column more int; alter table two add column more int;'
  await writeFile(join(folder, '0002_columns.sql'), both)
  const other = connect()
  let done: ReturnType<typeof migrate> | undefined
  await db.transaction().execute(async (request) => {
    await sql`select from two for update`.execute(request)
    const migrating = migrate(other, files)
    const waits = sql`select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`
    await expect
      .poll(async () => (await waits.execute(db)).rows.length, { timeout: 20_000 })
      .toBe(1)
    await sql`select from one`.execute(request) // goes on when the migration has been rolled back
    void migrating.catch(() => undefined)
    done = migrating
  })
  expect((await done)?.applied).toEqual(['0002_columns.sql'])
  await other.destroy()
})
