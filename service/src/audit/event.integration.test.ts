import { createHash, randomUUID } from 'node:crypto'

import {
  createAdminApiKey,
  createProjectApiKey,
  deleteAdminApiKey,
  deleteProjectApiKey,
  listAdminApiKeys,
  listProjectApiKeys,
  updateProjectApiKey,
} from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import {
  createMember,
  createMemberInvitation,
  deleteMember,
  retrieveMember,
  updateMember,
} from '@gatehouse/contract/members/member'
import { deleteProjectMember, setProjectMember } from '@gatehouse/contract/members/project-member'
import {
  readOrganizationSettings,
  updateOrganizationSettings,
} from '@gatehouse/contract/organization/settings'
import { AdminKeyPermission } from '@gatehouse/contract/permission'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  publishPolicy,
  restorePolicyVersion,
  resumePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { replacePolicyExamples } from '@gatehouse/contract/policy-evaluation'
import { archiveProject, createProject, updateProject } from '@gatehouse/contract/project'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization, recoverOrganization, setStatus } from '#access/manage-organizations.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

type Sent = NonNullable<Parameters<typeof house.api.send>[1]>

/** A change that will succeed, with what the API shows before it and, unless it says so, after it. */
type Change = {
  sent: Sent
  action: string
  object: string
  before: object | null
  isRemoval?: true
  /** The answer is not the resource that has changed, which is this policy. */
  policy?: { id: string }
}

type Case = {
  /** Makes what there is to change. */
  arrange(): Promise<Change>
  /** Requests that are refused. */
  refused(): Promise<Sent[]> | Sent[]
  /** A request that succeeds and changes nothing, once the change is made. */
  unchanged?(change: Change): Sent
}

const named = { body: { name: 'New' } }
const policyBody = { name: 'Weapons', rule: 'None.' }
const nowhere = { params: { policy_id: 'pol_none', version: '1' } }
const at = ({ id }: { id: string }) => ({ policy_id: id, version: '1' })
const created = (object: string, sent: Sent): Change => ({
  sent,
  object: `organization.${object}`,
  action: 'created',
  before: null,
})

const policyCase = (
  action: string,
  arrange: () => ReturnType<typeof house.create>,
  body: object = {},
): Case => ({
  async arrange() {
    const before = await arrange()
    const sent = { params: at(before), body: { revision: before.revision, ...body } }
    return { sent, action, object: 'organization.policy', before }
  },
  async refused() {
    const stale = { params: at(await arrange()), body: { revision: 77 } }
    return [stale, { ...nowhere, body: { revision: 1 } }, { ...nowhere, body: {} }]
  },
})

async function arrangeProject(action: string, sent: Sent = {}): Promise<Change> {
  const { body: before } = await house.api.send(createProject, named)
  const params = { project_id: before.id }
  return { sent: { ...sent, params }, action, object: 'organization.project', before }
}

/** A key as its list shows it, and the request that removes it. */
async function arrangeKey(kind: 'admin' | 'project'): Promise<Change> {
  const { api } = house
  const params = { project_id: api.organization.projectId }
  const [create, list, object] =
    kind === 'admin'
      ? ([createAdminApiKey, listAdminApiKeys, 'admin_api_key'] as const)
      : ([createProjectApiKey, listProjectApiKeys, 'project.api_key'] as const)
  const { body } = await api.send(create, { params, body: { name: 'Old', permissions: [] } })
  const listed = (await api.send(list, { params })).body.data.find(({ id }) => id === body.id)
  return {
    sent: { params: { ...params, key_id: body.id } },
    action: 'deleted',
    object: `organization.${object}`,
    before: listed ?? null,
    isRemoval: true,
  }
}

/** What the answer to a creation shows once. */
function withoutSecrets(answer: { id: string }) {
  const secrets = ['value', 'invitation_url', 'invitation_expires_at']
  return Object.fromEntries(Object.entries(answer).filter(([name]) => !secrets.includes(name)))
}

/** A member of the organization, and the paths of requests about it and about its membership in a project. */
async function arrangeMember() {
  const { api } = house
  const body = { email: `${randomUUID()}@example.com`, role: 'viewer' }
  const { id: member_id } = (await api.send(createMember, { body })).body
  const params = { project_id: api.organization.projectId, member_id }
  return { before: (await api.send(retrieveMember, { params })).body, params }
}
const unknownMember = { params: { project_id: 'proj_none', member_id: 'mem_none' } }

const unknownProject = { params: { project_id: 'proj_none', key_id: 'key_none' }, ...named }

/** Every endpoint of administration that changes something. */
const cases: Record<string, Case> = {
  [createPolicy.id]: {
    arrange: async () => created('policy', { body: policyBody }),
    refused: () => [
      { body: { ...policyBody, scope: 'projects' } },
      { body: { ...policyBody, rule: ' ' } },
    ],
  },
  [updatePolicy.id]: {
    ...policyCase('updated', () => house.createIn('monitoring'), { rule: 'Other.', name: 'New' }),
    unchanged: ({ sent }) => ({ ...sent, body: { revision: 3, name: 'New' } }),
  },
  [publishPolicy.id]: policyCase('published', async () =>
    house.change(updatePolicy, await house.createIn('monitoring'), { rule: 'Other.' }),
  ),
  [pausePolicy.id]: policyCase('paused', () => house.createIn('enforcing')),
  [resumePolicy.id]: policyCase('resumed', () => house.createIn('paused')),
  [restorePolicyVersion.id]: {
    ...policyCase('updated', async () =>
      house.publishNext(await house.createIn('monitoring'), 'Other.'),
    ),
    unchanged: ({ sent }) => ({ ...sent, body: { revision: 5 } }),
  },
  [deletePolicy.id]: {
    async arrange() {
      const before = await house.createIn('enforcing')
      const sent = { params: at(before), query: { revision: String(before.revision) } }
      return { sent, action: 'deleted', object: 'organization.policy', before, isRemoval: true }
    },
    async refused() {
      const stale = { params: at(await house.create()), query: { revision: '77' } }
      return [stale, { ...nowhere, query: { revision: '1' } }, nowhere]
    },
  },
  [replacePolicyExamples.id]: {
    async arrange() {
      const before = await house.createIn('monitoring')
      const example = { text: 'Arms', direction: 'request', expect: 'must_not_match' }
      const body = { revision: before.revision, examples: [example] }
      const sent = { params: at(before), body }
      return { sent, action: 'updated', object: 'organization.policy', before, policy: before }
    },
    async refused() {
      const stale = { params: at(await house.create()), body: { revision: 77, examples: [] } }
      return [stale, { ...nowhere, body: { revision: 1, examples: [] } }]
    },
  },
  [createProject.id]: {
    arrange: async () => created('project', named),
    refused: () => [{ body: { name: '' } }],
  },
  [updateProject.id]: {
    arrange: () => arrangeProject('updated', { body: { name: 'Renamed' } }),
    refused: () => [unknownProject],
    unchanged: ({ sent }) => sent,
  },
  [archiveProject.id]: {
    arrange: () => arrangeProject('archived'),
    refused: () => [
      unknownProject,
      { params: { project_id: house.api.organization.projectId } }, // the default project
    ],
    unchanged: ({ sent }) => sent,
  },
  [updateOrganizationSettings.id]: {
    async arrange() {
      const { body: before } = await house.api.send(readOrganizationSettings)
      const sent = { body: { name: 'Renamed' } }
      return { sent, action: 'updated', object: 'organization.settings', before }
    },
    refused: () => [{ body: { name: '' } }],
    unchanged: ({ sent }) => sent,
  },
  [setProjectMember.id]: {
    async arrange() {
      const { params } = await arrangeMember()
      const sent = { params, body: { role: 'project_member' } }
      return created('project.member', sent)
    },
    refused: () => [{ ...unknownMember, body: { role: 'project_member' } }],
    unchanged: ({ sent }) => sent,
  },
  [deleteProjectMember.id]: {
    async arrange() {
      const { params } = await arrangeMember()
      const body = { role: 'project_member' }
      const { body: before } = await house.api.send(setProjectMember, { params, body })
      const object = 'organization.project.member'
      return { sent: { params }, action: 'deleted', object, before, isRemoval: true }
    },
    refused: () => [unknownMember],
  },
  [createMember.id]: {
    async arrange() {
      return created('member', { body: { email: `${randomUUID()}@example.com`, role: 'viewer' } })
    },
    refused: () => [{ body: { email: 'ada', role: 'viewer' } }],
  },
  [createMemberInvitation.id]: {
    async arrange() {
      const { params } = await arrangeMember()
      return created('member.invitation', { params })
    },
    refused: () => [unknownMember],
  },
  [updateMember.id]: {
    async arrange() {
      const { params, before } = await arrangeMember()
      const sent = { params, body: { name: 'Renamed' } }
      return { sent, action: 'updated', object: 'organization.member', before }
    },
    refused: () => [{ ...unknownMember, body: { name: 'Renamed' } }],
    unchanged: ({ sent }) => sent,
  },
  [deleteMember.id]: {
    async arrange() {
      const { params, before } = await arrangeMember()
      const object = 'organization.member'
      return { sent: { params }, action: 'deleted', object, before, isRemoval: true }
    },
    refused: () => [unknownMember],
  },
  [createProjectApiKey.id]: {
    async arrange() {
      const params = { project_id: house.api.organization.projectId }
      return created('project.api_key', { params, ...named })
    },
    refused: () => [unknownProject],
  },
  [updateProjectApiKey.id]: {
    async arrange() {
      const { isRemoval: _, ...key } = await arrangeKey('project')
      const sent = { ...key.sent, body: { limits: { requests_per_minute: 7 } } }
      return { ...key, sent, action: 'updated' }
    },
    refused: () => [{ ...unknownProject, body: { limits: null } }],
    unchanged: ({ sent }) => sent,
  },
  [deleteProjectApiKey.id]: {
    arrange: () => arrangeKey('project'),
    refused: () => [unknownProject],
  },
  [createAdminApiKey.id]: {
    arrange: async () => created('admin_api_key', { body: { name: 'New', permissions: [] } }),
    refused: () => [{ body: { name: 'New', permissions: ['model.invoke'] } }],
  },
  [deleteAdminApiKey.id]: {
    arrange: () => arrangeKey('admin'),
    async refused() {
      const [last] = (await house.api.send(listAdminApiKeys)).body.data
      return [{ params: { key_id: last!.id } }, { params: { key_id: 'key_none' } }]
    },
  },
}

type Header = Record<string, string | number | null>

async function readEvents(behind = 0) {
  const rows = await house.api.db.selectFrom('event').selectAll().orderBy('seq').execute()
  return rows.slice(behind).map((row) => ({
    ...row,
    header: row.header as Header,
    content: JSON.parse(row.payload?.toString() ?? '') as { before: unknown; after: unknown },
  }))
}

/** Those of the policy gateway, of approvals, which keys cannot give, and of sessions have tests of their own. */
const mutations: readonly Endpoint[] = endpoints.filter(
  ({ isIdempotent, path }) =>
    isIdempotent && path.startsWith('/v1/organization/') && !/\/(approvals|sessions)/.test(path),
)

test('every endpoint that changes something is tested here', () => {
  expect(new Set(Object.keys(cases))).toEqual(new Set(mutations.map(({ id }) => id)))
})

test.each(mutations)(
  '$id leaves one event: who did what, when, and how it was',
  async (endpoint) => {
    const { api } = house
    const arranged = await cases[endpoint.id]!.arrange()
    const { sent, action, object, before, isRemoval, policy } = arranged
    const everything = { name: 'Actor', permissions: AdminKeyPermission.options }
    const actor = (await api.send(createAdminApiKey, { body: everything })).body
    const past = (await readEvents()).length
    const startedAt = Date.now()
    const answer = await api.send(endpoint, { ...sent, credential: actor.value })
    expect(answer.status).toBe(endpoint.successStatus)
    const resource = policy ? await house.read(policy) : answer.body
    const [event, ...more] = await readEvents(past)
    expect(more).toEqual([])
    expect(event).toMatchObject({
      organization_id: api.organization.organizationId,
      kind: 'revision',
      header: {
        action,
        object,
        object_id: resource.id,
        actor: actor.id,
        actor_type: 'admin_key',
        request_id: answer.headers['x-request-id'],
      },
    })
    const after = withoutSecrets(resource)
    expect(event!.content).toEqual({ before, after: isRemoval ? null : after })
    const hash = createHash('sha256').update(event!.salt!).update(event!.payload!)
    expect(event!.payload_hash).toEqual(hash.digest())
    expect(event!.salt).toHaveLength(16)
    expect(event!.at.getTime()).toBeGreaterThanOrEqual(startedAt)
    expect(event!.at.getTime()).toBeLessThanOrEqual(Date.now())
    expect(parseInt(event!.id.replace('-', '').slice(0, 12), 16)).toBe(event!.at.getTime())
  },
)

test.each(mutations)(
  '$id leaves no event when refused, repeated or without effect',
  async (endpoint) => {
    const { arrange, refused, unchanged } = cases[endpoint.id]!
    const send = async (sent: Sent, statusMin: number, statusMax = statusMin) => {
      const { status, body } = await house.api.send(endpoint, sent)
      expect(status).toBeGreaterThanOrEqual(statusMin)
      expect(status).toBeLessThanOrEqual(statusMax)
      return body
    }
    const refusals = await refused()
    const past = (await readEvents()).length
    for (const sent of refusals) {
      await send(sent, 400, 422)
      await send({ ...sent, headers: { 'idempotency-key': 'refused' } }, 400, 422)
    }
    expect(await readEvents(past)).toEqual([])
    const powerless = { name: 'Powerless', permissions: [] }
    const { value } = (await house.api.send(createAdminApiKey, { body: powerless })).body
    const change = await arrange()
    const arranged = (await readEvents()).length
    await send({ ...change.sent, credential: value }, 403)
    const once = { ...change.sent, headers: { 'idempotency-key': 'once' } }
    const made = await send(once, endpoint.successStatus)
    expect(await send(once, endpoint.successStatus)).toEqual(made)
    if (unchanged) expect(await send(unchanged(change), 200)).toEqual(made)
    expect(await readEvents(arranged)).toHaveLength(1)
  },
)

test('no event holds the secret of a key', async () => {
  const { api } = house
  const params = { project_id: api.organization.projectId }
  const made = await Promise.all([
    api.send(createAdminApiKey, { body: { name: 'Admin', permissions: [] } }),
    api.send(createProjectApiKey, { params, body: { name: 'Project' } }),
    recoverOrganization(api.organization.organizationId, api.house),
  ])
  for (const [endpoint, { arrange }] of Object.entries(cases)) {
    const { sent } = await arrange()
    await api.send(
      mutations.find(({ id }) => id === endpoint)!,
      sent,
    )
  }
  const events = await readEvents()
  const text = events.map((event) => JSON.stringify([event, event.content])).join('\n')
  expect(text).toContain(made[0].body.id)
  expect(text).toMatch(/gate_prj_\w\w\.\.\./) // what may be shown is there
  expect(text).not.toMatch(/gate_(adm|prj)_\w{3}/)
  const secrets = [
    made[0].body.value,
    made[1].body.value,
    made[2]!.adminKey,
    api.organization.adminKey,
  ]
  for (const secret of secrets) expect(text).not.toContain(secret.slice(9, 40))
})

test('what an operator does is an event of the operator, and what changes nothing is none', async () => {
  const { house: tools } = house.api
  const mark = (await readEvents()).length
  const { organizationId: id, projectId, adminKey } = await createOrganization('New', tools)
  const recovered = await recoverOrganization(id, tools)
  await setStatus(id, 'active', tools)
  await setStatus(id, 'suspended', tools)
  await setStatus(id, 'suspended', tools)
  await setStatus(id, 'active', tools)
  await setStatus('org_none', 'suspended', tools)
  await recoverOrganization('org_none', tools)
  const events = await readEvents(mark)
  const credential = recovered!.adminKey
  const keys = (await house.api.send(listAdminApiKeys, { credential })).body.data
  const [first, second] = keys.map(({ last_used_at: _, ...key }: Record<string, unknown>) => key)
  const object = 'organization'
  const standing = (status: string) => ({ id, object, status })
  expect(events.map(({ content }) => content)).toEqual([
    {
      before: null,
      after: { ...standing('active'), name: 'New', project_id: projectId, key_id: first!['id'] },
    },
    { before: null, after: second },
    { before: standing('active'), after: standing('suspended') },
    { before: standing('suspended'), after: standing('active') },
  ])
  const by = { actor: 'operator', actor_type: 'operator', request_id: null }
  expect(events.map(({ header }) => header)).toEqual([
    { ...by, action: 'created', object, object_id: id },
    { ...by, action: 'created', object: 'organization.admin_api_key', object_id: second!['id'] },
    { ...by, action: 'suspended', object, object_id: id },
    { ...by, action: 'reinstated', object, object_id: id },
  ])
  expect(new Set(events.map((event) => event.organization_id))).toEqual(new Set([id]))
  expect(JSON.stringify(events)).not.toContain(adminKey.slice(9))
})

test('events of one organization share a shard; the shards are 16', async () => {
  for (let index = 0; index < 20; index++) {
    const { adminKey } = await createOrganization(`${index}`, house.api.house)
    await house.api.send(createProject, { ...named, credential: adminKey })
  }
  const shards = new Map<string, Set<number>>()
  for (const { organization_id: id, shard } of await readEvents()) {
    shards.set(id, (shards.get(id) ?? new Set()).add(shard))
  }
  expect([...shards.values()].every(({ size }) => size === 1)).toBe(true)
  const all = [...shards.values()].flatMap((each) => [...each])
  expect(all.every((shard) => shard >= 0 && shard < 16)).toBe(true)
  expect(new Set(all).size).toBeGreaterThan(3)
})
