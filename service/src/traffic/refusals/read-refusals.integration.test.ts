import {
  createProjectApiKey,
  deleteProjectApiKey,
  updateProjectApiKey,
} from '@gatehouse/contract/api-key'
import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import { readRefusals, type Refusals } from '@gatehouse/contract/organization/traffic'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { operatorOrganizationId } from '#audit/event.ts'
import { createUuid } from '#platform/id.ts'
import { transact } from '#platform/transaction.ts'
import { completion, type PlainCalls, preparePlainCalls, sendPlain } from '#testing/plain-calls.ts'

import { addUnrecorded, sweepRefusalBatches, sweepRefusalSums } from './refusal-store.ts'

const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] }

async function prepare() {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) => sendPlain(response, completion('Hello.'))
  const params = { project_id: calls.organization.projectId }
  const made = await calls.send(createProjectApiKey, { params, body: { name: 'Slow' } })
  const { id, value: credential } = made.body
  const ofKey = { ...params, key_id: id }
  const limits = { requests_per_minute: 1 }
  const changed = await calls.send(updateProjectApiKey, { params: ofKey, body: { limits } })
  expect(changed.status).toBe(200)
  const ask = async (by = credential) =>
    (await calls.send(createChatCompletion, { credential: by, body })).status
  return { calls, key: { id, params: ofKey }, ask }
}

async function read({ send, house }: PlainCalls, query: Record<string, string> = {}) {
  await house.refusals.flush()
  const answer = await send(readRefusals, { query })
  return { ...answer, body: answer.body as unknown as Refusals & typeof answer.body }
}

/** The sums of every organization. */
const storedIn = async ({ db }: PlainCalls) =>
  (
    await sql<{ said: string }>`
      select concat_ws(' ', organization_id, scope, metric, count) as said from refusal_hour order by 1`.execute(
      db,
    )
  ).rows.map(({ said }) => said)

test('200: who was refused and why; what leaves an event is not told here', async () => {
  const { calls, key, ask } = await prepare()
  expect([await ask(), await ask(), await ask()]).toEqual([200, 429, 429])
  // Refused for another reason, with an event.
  expect((await calls.ask({ model: 'none' })).status).toBe(404)
  await calls.send(deleteProjectApiKey, { params: key.params })
  await expect.poll(() => ask()).toBe(401)
  expect(await ask(`gate_prj_${'0'.repeat(43)}2tvo1y`)).toBe(401)
  const { status, body: said } = await read(calls)
  expect(status).toBe(200)
  const slow = {
    project_id: calls.organization.projectId,
    key_id: key.id,
    is_other: false,
    last_at: expect.any(Number) as number,
  }
  const limited = said.data.find(({ scope }) => scope === 'key')
  expect(limited).toMatchObject({ ...slow, metric: 'requests_per_minute' })
  expect(limited?.count).toBeGreaterThanOrEqual(2)
  const revoked = said.data.find(({ scope }) => scope === 'credential')
  expect(revoked).toMatchObject({ ...slow, metric: 'revoked_api_key', count: 1 })
  expect(said.data).toHaveLength(2)
  expect(said.total).toBe((limited?.count ?? 0) + 1)
  // A key that does not exist belongs to no organization.
  expect(await storedIn(calls)).toContain(`${operatorOrganizationId} credential invalid_api_key 1`)
  expect((await read(calls, { key_id: 'key_none' })).body.total).toBe(0)
})

test('while the database is away nothing grows, and nothing is counted twice', async () => {
  const { calls, ask } = await prepare()
  await ask()
  await sql`alter table refusal_hour rename to away`.execute(calls.db)
  for (let round = 0; round < 3; round++) {
    expect(await ask()).toBe(429)
    await calls.house.refusals.flush()
  }
  await sql`alter table away rename to refusal_hour`.execute(calls.db)
  expect((await read(calls)).body.total).toBe(1)
  expect((await read(calls)).body.total).toBe(3)
  expect((await read(calls)).body.total).toBe(3)
})

test('a batch that is written again counts once', async () => {
  const { calls } = await prepare()
  const { organizationId } = calls.organization
  const id = createUuid(new Date())
  const row = { organizationId, projectId: '', keyId: 'k', scope: 'key', metric: 'requests' }
  const write = () =>
    transact(calls.db, (tx) => addUnrecorded(tx, id, [{ ...row, count: 7, lastAt: new Date() }]))
  await write()
  await write()
  expect((await read(calls)).body.total).toBe(7)
})

test('422: from is not before to', async () => {
  const { calls } = await prepare()
  const { status, body: refused } = await read(calls, { from: '2026-06-02', to: '2026-06-01' })
  expect([status, refused.error.param]).toEqual([422, 'query.from'])
})

test('what is too old is removed', async () => {
  const { calls, ask } = await prepare()
  await ask()
  await ask()
  await read(calls)
  const later = new Date(Date.now() + 2 * 60 * 60 * 1000)
  expect(await transact(calls.db, (tx) => sweepRefusalSums(tx, later, 10))).toBe(1)
  expect(await transact(calls.db, (tx) => sweepRefusalBatches(tx, later, 10))).toBe(1)
})
