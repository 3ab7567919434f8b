import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'
import { expect, test } from 'vitest'

import { createTestDatabase } from './test-database.ts'

test('the drop waits for a connection that is still closing', async () => {
  const database = await createTestDatabase()
  const pool = new pg.Pool({ connectionString: database.url, max: 1 })
  const errors: Error[] = []
  pool.on('error', (error) => errors.push(error))
  await pool.query('select 1')
  const dropped = database[Symbol.asyncDispose]()
  await sleep(500)
  await pool.end()
  await dropped
  expect(errors).toEqual([])
})

test('a test that leaves a connection open fails, and its database is still dropped', async () => {
  const database = await createTestDatabase({ waitMs: 100 })
  const pool = new pg.Pool({ connectionString: database.url, max: 1 })
  pool.on('error', () => undefined)
  await pool.query("select 'left open'")
  await expect(database[Symbol.asyncDispose]()).rejects.toThrow(
    /1 open connections to its database.*select 'left open'/,
  )
  await expect(pool.query('select 1')).rejects.toThrow('does not exist')
  await pool.end()
})
