import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Kysely, sql } from 'kysely'
import { Migrator } from 'kysely/migration'

import { type Db, isLockTimeout } from './database.ts'

export const migrationsFolder = new URL('../../migrations/', import.meta.url)

const attemptsMax = 20
const pauseMs = 500

/** Applies the missing migrations in the order of their names, under a lock: concurrent runs are safe. */
export async function migrate(db: Db, folder: URL = migrationsFolder): Promise<string[]> {
  for (let attempt = 1; ; attempt++) {
    const { error, results = [] } = await createMigrator(db, folder).migrateToLatest()
    if (!error) return results.map(({ migrationName }) => migrationName)
    // Another session held a lock for too long, or is migrating too: nothing was applied, so try again.
    if (!isLockTimeout(error) || attempt >= attemptsMax) throw error
    await sleep(pauseMs)
  }
}

/** The names of migrations that have not been applied. A process must not serve with an older schema. */
export async function missingMigrations(db: Db, folder: URL = migrationsFolder): Promise<string[]> {
  const migrations = await createMigrator(db, folder).getMigrations()
  return migrations.filter(({ executedAt }) => !executedAt).map(({ name }) => name)
}

const createMigrator = (db: Db, folder: URL) =>
  new Migrator({ db, provider: { getMigrations: () => readMigrations(folder) } })

async function readMigrations(folder: URL) {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted()
  return Object.fromEntries(
    names.map((name) => [
      name,
      { up: (db: Kysely<unknown>) => runFile(db, new URL(name, folder)) },
    ]),
  )
}

async function runFile(db: Kysely<unknown>, file: URL) {
  await sql.raw(await readFile(file, 'utf8')).execute(db)
}
