import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

test('409: a rule that is not accepted any more is not published', async () => {
  const api = await createTestApi()
  const { body } = await api.send(createPolicy, { body: { name: 'Old', rule: 'Be kind.' } })
  // As if what judges rules had become stricter since.
  await sql`update policy set rule = 'cel:' where id = ${body.id}`.execute(api.db)
  const params = { policy_id: body.id }
  const answer = await api.send(publishPolicy, { params, body: { revision: 1 } })
  const { code, param } = answer.body.error
  expect([answer.status, code, param]).toEqual([409, 'draft_not_publishable', 'draft.rule'])
  const stale = await api.send(publishPolicy, { params, body: { revision: 2 } })
  expect(stale.body.error.code).toBe('revision_conflict')
})
