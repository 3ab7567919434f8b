import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  publishPolicy,
  restorePolicyVersion,
  resumePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { revisionMax } from '@gatehouse/contract/revision'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'

const body = { name: 'Name', rule: 'Rule.' }
const outcome = ({
  status,
  body: { error },
}: {
  status: number
  body: { error?: { code: string } }
}) => (error ? `${status} ${error.code}` : `${status}`)

test('409: an organization has a limited number of policies; deleting one makes room', async () => {
  const { api, create, send } = await createPolicyApi({ environment: { POLICIES_MAX: '2' } })
  const first = await create()
  await create()
  const third = await api.send(createPolicy, { body })
  expect([outcome(third), third.headers['x-should-retry']]).toEqual(['409 limit_reached', 'false'])
  const other = await createOrganization('Other', api.house)
  const elsewhere = await api.send(createPolicy, { body, credential: other.adminKey })
  expect(outcome(elsewhere)).toBe('201')
  await send(deletePolicy, first)
  expect(outcome(await api.send(createPolicy, { body }))).toBe('201')
  expect(outcome(await api.send(createPolicy, { body }))).toBe('409 limit_reached')
})

test('409: many creators at once do not exceed the limit', async () => {
  const { api } = await createPolicyApi({ environment: { POLICIES_MAX: '2' } })
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => api.send(createPolicy, { body })),
  )
  const made = answers.filter(({ status }) => status === 201)
  const refused = answers.filter((answer) => outcome(answer) === '409 limit_reached')
  expect([made.length, refused.length]).toEqual([2, 6])
})

/** A policy at the given revision, which is too high to be reached by editing. */
async function createAt(revision: number, state: 'monitoring' | 'paused' = 'monitoring') {
  const house = await createPolicyApi()
  const first = await house.createIn(state)
  const { id } = await house.change(updatePolicy, first, { rule: 'Edited.' })
  const { db } = house.api
  await db.updateTable('policy').set({ revision }).where('id', '=', id).execute()
  return { ...house, policy: await house.read({ id }) }
}

test('the last revision can be reached', async () => {
  const { policy, change } = await createAt(revisionMax - 1)
  const edited = await change(updatePolicy, policy, { name: 'Last' })
  expect(edited).toMatchObject({ revision: revisionMax, name: 'Last' })
})

test.each<[Endpoint, 'monitoring' | 'paused']>([
  [updatePolicy, 'monitoring'],
  [publishPolicy, 'monitoring'],
  [pausePolicy, 'monitoring'],
  [resumePolicy, 'paused'],
  [restorePolicyVersion, 'monitoring'],
])('409: $id of a policy at the last revision, which can still be deleted', async (...given) => {
  const [endpoint, state] = given
  const { policy, read, send } = await createAt(revisionMax, state)
  const sent = { params: { version: '1' }, ...(endpoint === updatePolicy && { body }) }
  const refused = await send(endpoint, policy, sent)
  expect([outcome(refused), refused.headers['x-should-retry']]).toEqual([
    '409 limit_reached',
    'false',
  ])
  expect(await read(policy)).toEqual(policy)
  expect(outcome(await send(deletePolicy, policy))).toBe('200')
})

test('200: an edit that changes nothing needs no revision, so the last one is enough', async () => {
  const { policy, send } = await createAt(revisionMax)
  const answer = await send(updatePolicy, policy)
  expect([outcome(answer), answer.body]).toEqual(['200', policy])
})
