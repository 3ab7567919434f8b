import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Kysely, type QueryExecutorProvider, sql } from 'kysely'
import { Migrator } from 'kysely/migration'

import { migrationsFolder } from './assets.ts'
import { type Db, isDeadlock, isLockTimeout } from './database.ts'

// Releases and schemas. The number of a release is that of the newest migration it has. A migration says in its first
// line which releases still work once it is applied, `-- Works with releases since 0010`; without that line none before
// its own do. The database keeps what its migrations say, so that an older release can check it too:
//
//   the database                                     this release
//   lacks migrations of this release                 waits until they are applied, and is not ready before
//   has exactly the migrations of this release       runs
//   has newer ones, which work with this release     runs; `migrate` has nothing to do
//   has newer ones, which do not                     refuses to start, and to migrate
//   has some unknown ones and lacks others           refuses to start, and to migrate

type SchemaState = {
  /** The number of this release. */
  release: string
  /** Migrations of this release that are not applied. */
  missing: readonly string[]
  /** Applied migrations that this release does not have. */
  newer: readonly string[]
  /** The oldest release that the applied migrations allow; null: none says so. */
  oldestRelease: string | null
}

export const numberOf = (migration: string) => migration.slice(0, 4)

/** The oldest release that works once a migration is applied. */
export const readOldestRelease = (migration: string, text: string) =>
  /^-- Works with releases since (\d{4})$/m.exec(text.split('\n', 1)[0] ?? '')?.[1] ??
  numberOf(migration)

/** Why this release must not use the database, and what to do about it; null where it may. */
export function findMismatch({ release, missing, newer, oldestRelease }: SchemaState) {
  const last = newer.at(-1)
  if (last === undefined) return null
  if (missing.length > 0) {
    return (
      `The database has the migration ${last}, which this release does not have, and lacks ${missing[0]}, which it has: ` +
      'they do not come from the same line of releases. Use a release that has both, or another database.'
    )
  }
  if (oldestRelease === null || oldestRelease <= release) return null
  return (
    `The database was migrated by a newer release (${last}) and works with releases since ${oldestRelease}; ` +
    `this one is ${release}. Start a release that has the migration ${oldestRelease}. ` +
    'Migrations are not undone: to return to this release, restore a backup from before that migration.'
  )
}

const attemptsMax = 20
const pauseMs = 500

/** What `migrate` did, and the migrations of newer releases that it found. */
export type Migrated = { applied: string[]; newer: readonly string[] }

/**
 * Applies the missing migrations in the order of their names, under a lock: concurrent runs are safe. A schema of a
 * newer release is left as it is, if this one works with it.
 */
export async function migrate(db: Db, folder: URL = migrationsFolder): Promise<Migrated> {
  for (let attempt = 1; ; attempt++) {
    const { newer } = await requireCompatibleSchema(db, folder)
    if (newer.length > 0) return { applied: [], newer }
    const { error, results = [] } = await createMigrator(db, folder).migrateToLatest()
    if (!error) return { applied: results.map(({ migrationName }) => migrationName), newer }
    // Another session held a lock for too long, waited for one of ours, or is migrating too: nothing was applied, so try again.
    const state = await readSchemaState(db, folder).catch(() => null)
    const isPassing = isLockTimeout(error) || isDeadlock(error) || (state?.newer.length ?? 0) > 0
    if (!isPassing || attempt >= attemptsMax) throw error
    await sleep(pauseMs)
  }
}

/** Throws where this release must not use the database. */
export async function requireCompatibleSchema(db: Db, folder?: URL): Promise<SchemaState> {
  const state = await readSchemaState(db, folder)
  const mismatch = findMismatch(state)
  if (mismatch !== null) throw new Error(mismatch)
  return state
}

export async function readSchemaState(
  db: Db,
  folder: URL = migrationsFolder,
): Promise<SchemaState> {
  const own = await listMigrations(folder)
  const applied = (await hasTable(db, 'kysely_migration'))
    ? (await sql<Applied>`select name from kysely_migration order by name`.execute(db)).rows
    : []
  const names = new Set(applied.map(({ name }) => name))
  return {
    release: numberOf(own.at(-1) ?? ''),
    missing: own.filter((name) => !names.has(name)),
    newer: [...names].filter((name) => !own.includes(name)),
    oldestRelease: await readStrictest(db),
  }
}

type Applied = { name: string }

async function readStrictest(db: Db): Promise<string | null> {
  if (!(await hasTable(db, 'schema_requirement'))) return null
  const query = sql<{ oldest: string | null }>`
    select max(oldest_release) as oldest from schema_requirement`
  return (await query.execute(db)).rows[0]?.oldest ?? null
}

async function hasTable(db: QueryExecutorProvider, name: string): Promise<boolean> {
  const query = sql<{ found: boolean }>`select to_regclass(${name}) is not null as found`
  return (await query.execute(db)).rows[0]?.found ?? false
}

const createMigrator = (db: Db, folder: URL) =>
  new Migrator({ db, provider: { getMigrations: () => readMigrations(folder) } })

const listMigrations = async (folder: URL) =>
  (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted()

async function readMigrations(folder: URL) {
  const names = await listMigrations(folder)
  return Object.fromEntries(
    names.map((name) => [name, { up: (db: Kysely<unknown>) => apply(db, name, folder) }]),
  )
}

/** Runs in the transaction of the whole migration, as the record of what it demands does. */
async function apply(db: Kysely<unknown>, name: string, folder: URL) {
  const text = await readFile(new URL(name, folder), 'utf8')
  await sql.raw(text).execute(db)
  if (!(await hasTable(db, 'schema_requirement'))) return
  const oldest = readOldestRelease(name, text)
  await sql`
    insert into schema_requirement (migration, oldest_release) values (${name}, ${oldest})`.execute(
    db,
  )
}
