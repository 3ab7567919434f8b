import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { createPolicy, pausePolicy, publishPolicy, updatePolicy } from '@gatehouse/contract/policy'
import { sql } from 'kysely'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'

import { formatKey } from '#access/secret.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { createDatabaseProxy } from '#testing/test-gateway.ts'

// 429, 500 and 503 on every mutation of policies, in the administration body; and nothing is changed.

const mutations = (endpoints as readonly Endpoint[])
  .filter(({ path, isIdempotent }) => path.includes('/policies') && isIdempotent)
  // Keys cannot approve, and these calls are made with one.
  .filter(({ path }) => !path.includes('/approvals'))
  .map((endpoint) => [endpoint.id, endpoint] as const)

type Api = Awaited<ReturnType<typeof createTestApi>>
let api: Api
let database: Awaited<ReturnType<typeof createTestDatabase>>
let proxy: Awaited<ReturnType<typeof createDatabaseProxy>>
let ids: Record<string, string>
let revision: string

beforeEach(async () => {
  database = await createTestDatabase()
  proxy = await createDatabaseProxy(database.url)
  api = await createTestApi({ environment: { DATABASE_URL: proxy.url } })
  onTestFinished(async () => {
    await proxy[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })
  const { body } = await api.send(createPolicy, { body: { name: 'Kindness', rule: 'Be kind.' } })
  ids = { policy_id: body.id, version: '1' }
  await api.send(publishPolicy, { params: ids, body: { revision: 1 } })
  await api.send(updatePolicy, { params: ids, body: { revision: 2, rule: 'Be kinder.' } })
  revision = '3'
})

/** A request that would be carried out, but for what stands in its way. */
const send = (endpoint: Endpoint, changes: { credential?: string } = {}) =>
  api.send(endpoint, {
    ...(endpoint.params && { params: ids }),
    ...(endpoint.method === 'DELETE' ? { query: { revision } } : { body: bodyFor(endpoint) }),
    ...changes,
  })

function bodyFor({ id }: Endpoint) {
  if (id === 'createPolicy') return { name: 'Another', rule: 'Be kind.' }
  const example = { text: 'Rude.', direction: 'request', expect: 'must_match' }
  return {
    revision: Number(revision),
    ...(id === 'updatePolicy' && { rule: 'Be kindest.' }),
    ...(id === 'replacePolicyExamples' && { examples: [example] }),
  }
}

/** Only a paused policy can be resumed. */
async function prepareFor({ id }: Endpoint) {
  if (id !== 'resumePolicy') return
  await api.send(pausePolicy, { params: ids, body: { revision: 3 } })
  revision = '4'
}

const everything = async () => {
  const tables = [
    ...(['policy', 'policy_version', 'policy_example', 'policy_epoch'] as const),
    ...(['event', 'config_change'] as const),
  ]
  const counts = tables.map((table) =>
    database.db
      .selectFrom(table)
      .select(sql<string>`count(*)`.as('count'))
      .execute(),
  )
  const revisions = database.db.selectFrom('policy').select('revision').execute()
  return Promise.all([...counts, revisions])
}

const errorOf = ({ status, body }: Awaited<ReturnType<Api['send']>>) => [
  status,
  body.error.code,
  (body.error as { type?: string }).type,
  body.error.param,
]

describe.each(mutations)('%s', (_, endpoint) => {
  test('429: a client that tries many keys gets a Retry-After', async () => {
    const guess = (byte: number) => formatKey('gate_adm_', Buffer.alloc(32, byte))
    for (let byte = 1; byte <= 20; byte++) await send(endpoint, { credential: guess(byte) })
    const answer = await send(endpoint, { credential: guess(99) })
    expect(errorOf(answer)).toEqual([429, 'rate_limit_exceeded', 'rate_limit_error', null])
    for (const name of ['retry-after', 'x-ratelimit-limit', 'x-ratelimit-reset']) {
      expect(Number(answer.headers[name])).toBeGreaterThan(0)
    }
    expect(answer.headers['x-ratelimit-remaining']).toBe('0')
  })

  test('500: an unexpected failure reveals nothing and changes nothing', async () => {
    await prepareFor(endpoint)
    await sql`create function fail() returns trigger language plpgsql as
      $$ begin raise exception 'a secret of the database'; end $$`.execute(database.db)
    await sql`create trigger fail before insert on event for each row
      execute function fail()`.execute(database.db)
    const before = await everything()
    const answer = await send(endpoint)
    expect(errorOf(answer)).toEqual([500, 'internal_error', 'internal_error', null])
    expect(JSON.stringify(answer.body)).not.toContain('secret of the database')
    expect(await everything()).toEqual(before)
  })

  test('503: without the database, with Retry-After; afterwards nothing has changed', async () => {
    await prepareFor(endpoint)
    const before = await everything()
    await proxy.shut()
    const answer = await send(endpoint)
    expect(errorOf(answer)).toEqual([503, 'dependency_unavailable', 'internal_error', null])
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    await proxy.reopen()
    expect(await everything()).toEqual(before)
  })
})

test('the walk goes over all eight of them', () => {
  expect(mutations).toHaveLength(8)
})
