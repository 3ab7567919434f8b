import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Kysely, sql } from 'kysely'
import { Migrator } from 'kysely/migration'

import type { Db } from './database.ts'

export const migrationsFolder = new URL('../../migrations/', import.meta.url)

const attemptsMax = 20
const pauseMs = 500

/** Applies what is missing, in name order, under a lock; two starts at once are safe. */
export async function migrate(db: Db, folder: URL = migrationsFolder): Promise<string[]> {
  for (let attempt = 1; ; attempt++) {
    const { error, results = [] } = await migratorOf(db, folder).migrateToLatest()
    if (!error) return results.map(({ migrationName }) => migrationName)
    // Somebody held a lock for too long, or migrates as well: nothing was applied, try again.
    const isLocked = error instanceof Error && 'code' in error && error.code === '55P03'
    if (!isLocked || attempt >= attemptsMax) throw error
    await sleep(pauseMs)
  }
}

/** Has everything in the folder been applied? A process must not serve an older schema. */
export async function missingMigrations(db: Db, folder: URL = migrationsFolder): Promise<string[]> {
  const migrations = await migratorOf(db, folder).getMigrations()
  return migrations.filter(({ executedAt }) => !executedAt).map(({ name }) => name)
}

const migratorOf = (db: Db, folder: URL) =>
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
