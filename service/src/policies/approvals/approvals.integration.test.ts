import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  deletePolicy,
  pausePolicy,
  publishPolicy,
  resumePolicy,
  retrievePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import type { Role } from '@gatehouse/contract/role'
import {
  approvePolicy,
  listPolicyApprovals,
  withdrawPolicyApproval,
} from '@gatehouse/contract/two-persons/approval'
import { beforeEach, expect, test } from 'vitest'

import { createMemberSession } from '#testing/member-session.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

type Person = Awaited<ReturnType<typeof join>>
type At = { id: string; revision: number }

const join = (role: Role = 'policy_publisher') =>
  createMemberSession(house.api.house, {
    organizationId: house.api.organization.organizationId,
    role,
  })

const askForTwo = () =>
  house.api.db
    .updateTable('organization')
    .set({ publish_requires_approval: true })
    .where('id', '=', house.api.organization.organizationId)
    .execute()

/** Status and code of a call to a policy. */
async function attempt(person: Person | null, endpoint: Endpoint, policy: At, body: object = {}) {
  const credential = person ? { credential: person.token } : {}
  const answer = await house.send(endpoint, policy, { ...credential, body })
  return [answer.status, answer.body.error?.code]
}

const edit = async (person: Person, policy: At, rule: string) => {
  const sent = { credential: person.token, body: { rule } }
  const { status } = await house.send(updatePolicy, policy, sent)
  expect(status).toBe(200)
  return { id: policy.id, revision: policy.revision + 1 }
}

const versionOf = async ({ id }: At) => (await house.read({ id })).current_version

const nextRule = (() => {
  let next = 0
  return () => `cel: text.contains("w${next++}")`
})()

test('publishing waits for the approval of another member than the one who publishes or drafted', async () => {
  const [a, b, c] = [await join(), await join(), await join()]
  const draft = await edit(a, await house.create(), nextRule())
  await askForTwo()
  expect(await attempt(a, publishPolicy, draft)).toEqual([409, 'approval_required'])
  expect(await attempt(null, publishPolicy, draft)).toEqual([409, 'approval_required'])
  expect(await attempt(a, approvePolicy, draft)).toEqual([403, 'permission_denied'])
  expect(await attempt(b, approvePolicy, draft)).toEqual([201, undefined])
  expect(await attempt(b, publishPolicy, draft)).toEqual([409, 'approval_required'])
  expect(await versionOf(draft)).toBe(null)
  expect(await attempt(c, publishPolicy, draft)).toEqual([200, undefined])
  expect(await versionOf(draft)).toBe(1)
})

test('an approval is for one revision', async () => {
  const [a, b] = [await join(), await join()]
  const draft = await edit(a, await house.create(), nextRule())
  await askForTwo()
  await attempt(b, approvePolicy, draft)
  const changed = await edit(a, draft, nextRule())
  expect(await attempt(a, publishPolicy, changed)).toEqual([409, 'approval_outdated'])
  expect(await attempt(b, approvePolicy, draft)).toEqual([409, 'revision_conflict'])
  expect(await attempt(b, approvePolicy, changed)).toEqual([201, undefined])
  expect(await attempt(a, publishPolicy, changed)).toEqual([200, undefined])
})

test('an approval is refused by no set', async () => {
  const b = await join()
  const draft = await house.create()
  const managed_by = 'platform'
  await house.api.db.updateTable('policy').set({ managed_by }).where('id', '=', draft.id).execute()
  await askForTwo()
  expect(await attempt(b, approvePolicy, draft)).toEqual([201, undefined])
  expect((await house.read(draft)).managed_by).toBe(managed_by)
  expect(await attempt(null, publishPolicy, draft)).toEqual([409, 'managed_elsewhere'])
})

test('a key approves nothing, and publishes only with an approval', async () => {
  const b = await join()
  const draft = await house.create()
  await askForTwo()
  expect(await attempt(null, approvePolicy, draft)).toEqual([403, 'permission_denied'])
  expect(await attempt(b, approvePolicy, draft)).toEqual([201, undefined])
  expect(await attempt(null, publishPolicy, draft)).toEqual([200, undefined])
})

test('a member who may not publish cannot approve, nor one who was suspended or demoted since', async () => {
  const [a, b, editor] = [await join(), await join(), await join('policy_editor')]
  const draft = await edit(a, await house.create(), nextRule())
  await askForTwo()
  expect(await attempt(editor, approvePolicy, draft)).toEqual([403, 'permission_denied'])
  await attempt(b, approvePolicy, draft)
  for (const change of [{ status: 'suspended' }, { status: 'active', role: 'viewer' }]) {
    await house.api.db.updateTable('member').set(change).where('id', '=', b.memberId).execute()
    expect(await attempt(a, publishPolicy, draft)).toEqual([409, 'approval_required'])
  }
})

test('pausing never waits; resuming and deleting what enforces do', async () => {
  const [a, b] = [await join(), await join()]
  const policy = await house.createIn('enforcing')
  const monitoring = await house.createIn('monitoring')
  await askForTwo()
  expect(await attempt(a, deletePolicy, policy)).toEqual([409, 'approval_required'])
  expect(await attempt(a, deletePolicy, monitoring)).toEqual([200, undefined])
  expect(await attempt(a, pausePolicy, policy)).toEqual([200, undefined])
  const paused = await house.read(policy)
  expect(await attempt(a, resumePolicy, paused)).toEqual([409, 'approval_required'])
  await attempt(b, approvePolicy, paused)
  expect(await attempt(a, resumePolicy, paused)).toEqual([200, undefined])
  const resumed = await house.read(policy)
  expect(await attempt(a, deletePolicy, resumed)).toEqual([409, 'approval_outdated'])
  await attempt(b, approvePolicy, resumed)
  expect(await attempt(a, deletePolicy, resumed)).toEqual([200, undefined])
})

test('only an owner breaks the glass, with a reason, and it is an event and a metric of its own', async () => {
  const [owner, admin] = [await join('owner'), await join('admin')]
  const draft = await edit(admin, await house.create(), nextRule())
  await askForTwo()
  const glass = { break_glass: true, reason: 'The model leaks addresses right now.' }
  expect(await attempt(owner, publishPolicy, draft, { break_glass: true })).toEqual([
    422,
    'missing_field',
  ])
  for (const person of [admin, null]) {
    expect(await attempt(person, publishPolicy, draft, glass)).toEqual([403, 'permission_denied'])
  }
  expect(await attempt(owner, publishPolicy, draft, glass)).toEqual([200, undefined])
  const { rows } = await house.api.db
    .selectFrom('event')
    .select(['header'])
    .where('kind', '=', 'revision')
    .execute()
    .then((found) => ({ rows: found.map(({ header }) => header as Record<string, unknown>) }))
  const ofGlass = rows.filter(({ action }) => action === 'glass_broken')
  expect(ofGlass).toEqual([
    expect.objectContaining({ actor: owner.memberId, object_id: draft.id, reason: glass.reason }),
  ])
  expect(rows.find(({ action }) => action === 'published')).toMatchObject({ break_glass: true })
  const { values } = await house.api.house.metrics.glassBroken.get()
  expect(values[0]?.value).toBe(1)
})

test('approvals are listed, say whether they count, and are withdrawn by their member only', async () => {
  const [a, b] = [await join(), await join()]
  const draft = await edit(a, await house.create(), nextRule())
  await askForTwo()
  await attempt(b, approvePolicy, draft)
  expect(await attempt(b, approvePolicy, draft)).toEqual([201, undefined]) // the same one
  const params = { policy_id: draft.id }
  const list = async () =>
    (await house.api.send(listPolicyApprovals, { params })).body.data as unknown as {
      id: string
      counts: boolean
      member_id: string
    }[]
  const [approval] = await list()
  expect(await list()).toEqual([expect.objectContaining({ member_id: b.memberId, counts: true })])
  const withdraw = (person: Person) =>
    house.api.send(withdrawPolicyApproval, {
      credential: person.token,
      params: { ...params, approval_id: approval!.id },
    })
  expect((await withdraw(a)).status).toBe(404)
  await edit(a, draft, nextRule())
  expect((await list())[0]?.counts).toBe(false)
  expect((await withdraw(b)).status).toBe(200)
  expect(await list()).toEqual([])
})

test('without the rule nothing waits, and breaking the glass means nothing', async () => {
  const a = await join()
  const draft = await edit(a, await house.create(), nextRule())
  const glass = { break_glass: true, reason: 'None is needed.' }
  expect(await attempt(a, publishPolicy, draft, glass)).toEqual([200, undefined])
  const { body } = await house.api.send(retrievePolicy, { params: { policy_id: draft.id } })
  expect(body).toMatchObject({ current_version: 1 })
})

test('sixteen editors and approvers at once: no version without an approval of another member', async () => {
  const people = await Promise.all(Array.from({ length: 16 }, () => join('admin')))
  const policy = await house.create()
  await askForTwo()
  const actsOf = (index: number) => {
    if (index % 8 === 0) return [updatePolicy, publishPolicy, pausePolicy]
    return index % 2 === 0 ? [approvePolicy] : [publishPolicy, resumePolicy]
  }
  await Promise.all(
    people.map(async (person, index) => {
      const acts = actsOf(index)
      for (let turn = 0; turn < 15; turn++) {
        const { revision } = await house.read(policy)
        const act = acts[turn % acts.length]!
        const body = act === updatePolicy ? { rule: nextRule() } : {}
        await attempt(person, act, { id: policy.id, revision }, body)
      }
    }),
  )
  const events = await house.api.db
    .selectFrom('event')
    .select('header')
    .where('kind', '=', 'revision')
    .orderBy('seq')
    .execute()
  const approvals: { revision: unknown; by: unknown }[] = []
  let draftedBy: unknown = null
  let count = 0
  for (const { header } of events) {
    const event = header as Record<string, unknown>
    if (event['action'] === 'updated') draftedBy = event['actor']
    if (event['object'] === 'organization.policy.approval') {
      approvals.push({ revision: event['revision'], by: event['actor'] })
    }
    if (event['action'] !== 'published' && event['action'] !== 'resumed') continue
    count++
    const approvedRevision = Number(event['revision']) - 1
    const [by, actor] = [event['approved_by'], event['actor']]
    expect(approvals).toContainEqual({ revision: approvedRevision, by })
    expect(by).not.toBe(actor)
    if (event['action'] === 'published') expect(by).not.toBe(draftedBy)
  }
  console.log(`${count} publications and resumptions, ${approvals.length} approvals`)
  expect(count).toBeGreaterThan(0)
})
