import { deletePolicy, publishPolicy } from '@gatehouse/contract/policy'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createPolicyApi } from '#testing/policy-calls.ts'

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

const waiting = { query: { wait: 'applied' }, headers: { 'idempotency-key': 'k' } }

test('200: a replayed publication gets its first answer, also when the policy is deleted since', async () => {
  const draft = await house.create()
  const first = await house.send(publishPolicy, draft, waiting)
  const { rollout: _, ...published } = first.body as unknown as Record<string, unknown>
  expect([first.status, published['revision']]).toEqual([200, 2])
  await house.send(deletePolicy, { ...draft, revision: 2 })
  const again = await house.send(publishPolicy, draft, waiting)
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, 'true'])
  expect(again.body).toMatchObject(published)
})

test('200: a publication that was made is answered, also when the policy is deleted meanwhile', async () => {
  const draft = await house.create()
  // A process that lives and has applied nothing makes the publication wait.
  await sql`
    insert into api_process (id, started_at, seen_at) values (gen_random_uuid(), now(), now())`.execute(
    house.api.db,
  )
  const publishing = house.send(publishPolicy, draft, { query: { wait: 'applied' } })
  await expect.poll(async () => (await house.read(draft)).revision).toBe(2)
  expect((await house.send(deletePolicy, { ...draft, revision: 2 })).status).toBe(200)
  const { status, body } = await publishing
  expect([status, body]).toMatchObject([200, { id: draft.id, revision: 2, current_version: 1 }])
})
