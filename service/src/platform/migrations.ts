import { readdir, readFile } from 'node:fs/promises'

import { type Kysely, sql } from 'kysely'
import { Migrator } from 'kysely/migration'

import type { Db } from './database.ts'

export const migrationsFolder = new URL('../../migrations/', import.meta.url)

/** Applies what is missing, in name order, under a lock; two starts at once are safe. */
export async function migrate(db: Db, folder: URL = migrationsFolder): Promise<string[]> {
  const { error, results = [] } = await new Migrator({
    db,
    provider: { getMigrations: () => readMigrations(folder) },
  }).migrateToLatest()
  if (error) throw error
  return results.map(({ migrationName }) => migrationName)
}

/** Has everything in the folder been applied? A process must not serve an older schema. */
export async function missingMigrations(db: Db, folder: URL = migrationsFolder): Promise<string[]> {
  const migrations = await new Migrator({
    db,
    provider: { getMigrations: () => readMigrations(folder) },
  }).getMigrations()
  return migrations.filter(({ executedAt }) => !executedAt).map(({ name }) => name)
}

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
