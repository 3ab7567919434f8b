import { randomUUID } from 'node:crypto'

import { sql } from 'kysely'

import { connectDatabase } from '#platform/database.ts'

import { connectServer, templateName } from './migrated-template.ts'
import { databaseUrl } from './servers.ts'

/** A private, already migrated database, copied from the template in a few dozen milliseconds. */
export async function createTestDatabase() {
  const name = `gatehouse_test_${randomUUID().replaceAll('-', '').slice(0, 20)}`
  const template = await templateName()
  await onServer((server) =>
    sql`create database ${sql.id(name)} template ${sql.id(template)}`.execute(server),
  )
  const url = databaseUrl(name)
  const db = connectDatabase({ url, poolSize: 5 })
  return {
    url,
    db,
    async [Symbol.asyncDispose]() {
      await db.destroy()
      await onServer((server) => sql`drop database ${sql.id(name)} with (force)`.execute(server))
    },
  }
}

async function onServer<T>(work: (server: ReturnType<typeof connectServer>) => Promise<T>) {
  const server = connectServer()
  try {
    return await work(server)
  } finally {
    await server.destroy()
  }
}
