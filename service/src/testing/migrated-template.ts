import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'

import { sql } from 'kysely'

import { migrationsFolder } from '#platform/assets.ts'
import { connectDatabase, type Db } from '#platform/database.ts'
import { migrate } from '#platform/migrations.ts'

import { databaseUrl, serverUrl } from './servers.ts'

const unlimited = { poolSize: 2, statementTimeoutMs: 0, connectTimeoutMs: 0 }

/** Connects with the rights to create databases, and no time limits. */
export const connectServer = () => connectDatabase({ url: serverUrl, ...unlimited })

/** The template is named after the migrations, so that a changed migration creates a new one. */
export async function templateName(): Promise<string> {
  const names = (await readdir(migrationsFolder)).filter((name) => name.endsWith('.sql')).toSorted()
  const hash = createHash('sha256')
  for (const name of names)
    hash.update(name).update(await readFile(new URL(name, migrationsFolder)))
  return `gatehouse_template_${hash.digest('hex').slice(0, 16)}`
}

/** Creates the migrated database that tests copy, unless it exists; returns its name. */
async function createTemplate(): Promise<string> {
  const name = await templateName()
  const server = connectServer()
  try {
    // Of two test runs at the same time, one creates the template and the other waits for it.
    await server.connection().execute(async (connection) => {
      await sql`select pg_advisory_lock(hashtext('gatehouse_template'))`.execute(connection)
      if (!(await exists(connection, name))) await make(connection, name)
      await sql`select pg_advisory_unlock(hashtext('gatehouse_template'))`.execute(connection)
    })
  } finally {
    await server.destroy()
  }
  return name
}

async function exists(server: Db, name: string): Promise<boolean> {
  const { rows } = await sql`select 1 from pg_database where datname = ${name}`.execute(server)
  return rows.length > 0
}

/** Uses another name until the template is complete, so that an incomplete one is never copied. */
async function make(server: Db, name: string) {
  const unfinished = sql.id(`${name}_unfinished`)
  await sql`drop database if exists ${unfinished}`.execute(server)
  await sql`create database ${unfinished}`.execute(server)
  const db = connectDatabase({ url: databaseUrl(`${name}_unfinished`), ...unlimited })
  await migrate(db)
  await db.destroy()
  await sql`alter database ${unfinished} rename to ${sql.id(name)}`.execute(server)
}

/** Called by vitest once before the tests of a ring that copy it; stacks find its name in the environment. */
export async function setup() {
  process.env['TEST_DATABASE_TEMPLATE'] = await createTemplate()
}
