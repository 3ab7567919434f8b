import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'

import pg from 'pg'

/** Where the throwaway servers of a developer's machine are; the same variables as for the tests. */
export const serverUrl =
  process.env['TEST_DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres'
export const redisUrl = process.env['TEST_REDIS_URL'] ?? 'redis://127.0.0.1:6379'

const root = new URL('../', import.meta.url)

/** A fresh database with all migrations applied, dropped when its owner is done. */
export async function createMigratedDatabase(purpose: string, server = serverUrl) {
  const name = `gatehouse_${purpose}_${randomBytes(6).toString('hex')}`
  await onServer(server, `create database ${name}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  const drop = () => onServer(server, `drop database if exists ${name} with (force)`)
  try {
    await promisify(execFile)(process.execPath, ['service/src/migrate.ts'], {
      cwd: root,
      env: { ...process.env, DATABASE_URL: url.toString() },
    })
  } catch (error) {
    await drop()
    throw error
  }
  return { name, url: url.toString(), [Symbol.asyncDispose]: drop }
}

async function onServer(server: string, statement: string) {
  const client = new pg.Client({ connectionString: server, connectionTimeoutMillis: 3000 })
  try {
    await client.connect()
  } catch (error) {
    const { host } = new URL(server)
    throw new Error(
      `PostgreSQL cannot be reached at ${host}. Start it, or set TEST_DATABASE_URL to a server where databases may be created.`,
      { cause: error },
    )
  }
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
