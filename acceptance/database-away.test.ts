import { listProjects, createProject } from '@gatehouse/contract/project'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { call, codeOf } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// PostgreSQL terminates every connection during queries and transactions. The process keeps running, answers 503 with
// Retry-After to calls that need the database, and serves them as soon as it is back.

const stack = useStack({ models: null })
let admin: pg.Client
beforeAll(async () => {
  const url = new URL(stack().database.url)
  url.pathname = '/postgres'
  admin = new pg.Client({ connectionString: url.toString() })
  await admin.connect()
})
afterAll(() => admin.end())

const breakConnections = () =>
  admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
    stack().database.name,
  ])

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('under load with connections broken 20 times, the only 5xx is 503, and calls succeed again at once', async () => {
  const { base_url, admin_key: credential } = stack().description
  const statuses = new Map<number, number>()
  let isOver = false
  const worker = async (index: number) => {
    for (let round = 0; !isOver; round++) {
      const headers = { 'idempotency-key': `${index}-${round}` }
      const sent = { credential, headers, body: { name: `${index}-${round}` } }
      const answers = [
        await call(base_url, listProjects, { credential }),
        await call(base_url, createProject, sent),
      ]
      for (const answer of answers) {
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        if (answer.status < 500) continue
        expect([answer.status, codeOf(answer)]).toEqual([503, 'dependency_unavailable'])
        expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      }
    }
  }
  const workers = Array.from({ length: 8 }, (_, index) => worker(index))
  for (let round = 0; round < 20; round++) {
    await pause(100)
    await breakConnections()
  }
  isOver = true
  await Promise.all(workers)
  console.log(Object.fromEntries(statuses))
  expect(statuses.get(503)).toBeGreaterThan(0)
  expect(statuses.get(201)).toBeGreaterThan(0)
  expect(stack().apis[0]?.child.exitCode).toBeNull()
  expect((await call(base_url, listProjects, { credential })).status).toBe(200)
})

test('without connections known keys are still recognised and unknown keys get 503, until the database is back', async () => {
  const { base_url, admin_key: credential } = stack().description
  const unknown = `gate_adm_${'0'.repeat(43)}1BVBOF`
  const { name } = stack().database
  await admin.query(`alter database ${name} allow_connections false`)
  await breakConnections()
  try {
    const known = await call(base_url, listProjects, { credential })
    expect([known.status, codeOf(known)]).toEqual([503, 'dependency_unavailable'])
    const wrong = await call(base_url, listProjects, { credential, query: { limit: '0' } })
    expect(wrong.status).toBe(422) // recognised, and validated without the database
    const other = await call(base_url, listProjects, { credential: unknown })
    expect([other.status, codeOf(other)]).toEqual([503, 'dependency_unavailable'])
  } finally {
    await admin.query(`alter database ${name} allow_connections true`)
  }
  expect((await call(base_url, listProjects, { credential })).status).toBe(200)
})
