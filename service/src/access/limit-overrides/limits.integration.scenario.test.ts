import {
  createProjectApiKey,
  deleteProjectApiKey,
  listProjectApiKeys,
  updateProjectApiKey,
} from '@gatehouse/contract/api-key'
import { readLimits } from '@gatehouse/contract/limits'
import {
  archiveProject,
  createProject,
  listProjects,
  retrieveProject,
  updateProject,
} from '@gatehouse/contract/project'
import { beforeEach, expect, test } from 'vitest'

import { findKeyByHash, findTenancy } from '#access/credential-store.ts'
import { setPlan } from '#access/organizations/tier.ts'
import { changeOperatorLimits, showLimits } from '#operator/limits.ts'
import { createTestApi } from '#testing/test-api.ts'

// Administrators and the operator set limits of an organization on the free tier: 120 requests per minute, 20,000 per
// day, 2M tokens per minute, 8 at once.

let api: Awaited<ReturnType<typeof createTestApi>>
let params: { project_id: string; key_id: string }
let secret = ''
beforeEach(async () => {
  api = await createTestApi()
  const project_id = api.organization.projectId
  const body = { name: 'Caller' }
  const made = (await api.send(createProjectApiKey, { params: { project_id }, body })).body
  params = { project_id, key_id: made.id }
  secret = made.value
})

const organizationId = () => api.organization.organizationId
const setKey = (limits: unknown) =>
  api.send(updateProjectApiKey, { params, body: { limits } as object })
const setProject = (limits: unknown) =>
  api.send(updateProject, { params, body: { limits } as object })
const rows = () =>
  api.db
    .selectFrom('limit_override')
    .selectAll()
    .where('organization_id', '=', organizationId())
    .execute()
const unset = {
  requests_per_minute: null,
  requests_per_day: null,
  tokens_per_minute: null,
  concurrent_requests: null,
}

/** What authentication reads with the key. */
const readWithKey = async () => {
  const [{ hash }] = api.house.hashKey(secret)
  return (await findKeyByHash(api.db, [hash]))?.limit_overrides
}

test('a new project and a new key have no limits of their own', async () => {
  const { body: project } = await api.send(createProject, { body: { name: 'New' } })
  expect(project).toMatchObject({ limits: null })
  expect((await api.send(listProjectApiKeys, { params })).body.data).toMatchObject([
    { limits: null },
  ])
  expect(await readWithKey()).toBe(null)
})

test('200: limits of a key are set, kept, removed one by one and all at once, and read with it', async () => {
  const all = {
    requests_per_minute: 1,
    requests_per_day: 2,
    tokens_per_minute: 3,
    concurrent_requests: 4,
  }
  expect((await setKey(all)).body).toMatchObject({ id: params.key_id, limits: all })
  expect(await readWithKey()).toEqual({ key: all })
  expect((await setKey({ requests_per_minute: 9 })).body).toMatchObject({
    limits: { ...all, requests_per_minute: 9 },
  })
  const removed = await setKey({ requests_per_day: null, tokens_per_minute: null })
  const left = { requests_per_minute: 9, concurrent_requests: 4 }
  expect(removed.body).toMatchObject({ limits: { ...unset, ...left } })
  expect((await api.send(listProjectApiKeys, { params })).body.data).toMatchObject([
    { limits: { ...unset, ...left } },
  ])
  expect((await setKey(undefined)).body).toMatchObject({ limits: { ...unset, ...left } })
  expect((await setKey(null)).body).toMatchObject({ limits: null })
  expect(await rows()).toEqual([])
})

test('200: limits of a project are set with its name or alone, and shown wherever the project is', async () => {
  const limits = { ...unset, tokens_per_minute: 500 }
  const both = await api.send(updateProject, {
    params,
    body: { name: 'Desk', limits: { tokens_per_minute: 500 } },
  })
  expect(both.body).toMatchObject({ name: 'Desk', limits })
  expect((await api.send(retrieveProject, { params })).body).toMatchObject({ limits })
  expect((await api.send(listProjects)).body.data).toMatchObject([{ limits }])
  expect((await api.send(updateProject, { params, body: { name: 'Again' } })).body).toMatchObject({
    limits,
  })
  expect(await readWithKey()).toEqual({ project: { tokens_per_minute: 500 } })
  expect((await findTenancy(api.db, organizationId(), null))?.limit_overrides).toEqual({
    project: { tokens_per_minute: 500 },
  })
  expect((await setProject(null)).body).toMatchObject({ limits: null })
})

test('deleted keys and archived projects show the limits they had', async () => {
  const { body: project } = await api.send(createProject, { body: { name: 'Old' } })
  const at = { params: { project_id: project.id } }
  await api.send(updateProject, { ...at, body: { limits: { requests_per_day: 5 } } })
  const archived = await api.send(archiveProject, at)
  expect(archived.body).toMatchObject({ limits: { ...unset, requests_per_day: 5 } })
  await setKey({ requests_per_day: 5 })
  expect((await api.send(deleteProjectApiKey, { params })).status).toBe(200)
})

test.each([
  [{ requests_per_minute: 0 }, 'invalid_parameter', 'body.limits.requests_per_minute'],
  [{ requests_per_minute: -1 }, 'invalid_parameter', 'body.limits.requests_per_minute'],
  [{ requests_per_day: 1.5 }, 'invalid_parameter', 'body.limits.requests_per_day'],
  [{ tokens_per_minute: '5' }, 'invalid_parameter', 'body.limits.tokens_per_minute'],
  [{ concurrent_requests: 1e15 }, 'invalid_parameter', 'body.limits.concurrent_requests'],
  [{ tokens_per_day: 5 }, 'unknown_field', 'body.limits.tokens_per_day'],
  [{ rpm: 5 }, 'unknown_field', 'body.limits.rpm'],
  [[], 'invalid_parameter', 'body.limits'],
  [5, 'invalid_parameter', 'body.limits'],
])('422 for a key and for a project: %j', async (limits, code, param) => {
  for (const { status, body } of [await setKey(limits), await setProject(limits)]) {
    expect([status, body.error.code, body.error.param]).toEqual([422, code, param])
  }
  expect(await rows()).toEqual([])
})

test.each([
  ['requests_per_minute', 120],
  ['requests_per_day', 20_000],
  ['tokens_per_minute', 2_000_000],
  ['concurrent_requests', 8],
])('422: %s above the organization, whose number itself is allowed', async (name, limit) => {
  for (const set of [setKey, setProject]) {
    const { status, body } = await set({ requests_per_day: 1, [name]: limit + 1 })
    expect([status, body.error.code, body.error.param]).toEqual([
      422,
      'invalid_parameter',
      `body.limits.${name}`,
    ])
    expect(body.error.message).toBe(
      `'body.limits.${name}' is ${limit + 1}, above the organization's limit of ${limit}; use at most ${limit}.`,
    )
    expect((await set({ [name]: limit })).status).toBe(200)
  }
})

test("the organization's number is the current one: that of its plan, or what the operator has set", async () => {
  expect((await setKey({ requests_per_minute: 240 })).status).toBe(422)
  await setPlan(organizationId(), 'developer', api.house)
  expect((await setKey({ requests_per_minute: 240 })).status).toBe(200)
  await changeOperatorLimits(
    { organizationId: organizationId() },
    { requests_per_minute: 50 },
    api.house,
  )
  expect((await setKey({ requests_per_minute: 51 })).status).toBe(422)
  expect((await setKey({ requests_per_minute: 50 })).status).toBe(200)
})

test('404 and 409: keys and projects that cannot be changed', async () => {
  const body = { limits: { requests_per_minute: 1 } }
  const { body: project } = await api.send(createProject, { body: { name: 'Other' } })
  const codeAt = async (project_id: string, key_id: string) => {
    const answer = await api.send(updateProjectApiKey, { params: { project_id, key_id }, body })
    return [answer.status, answer.body.error.code]
  }
  expect(await codeAt('proj_none', params.key_id)).toEqual([404, 'project_not_found'])
  expect(await codeAt(params.project_id, 'key_none')).toEqual([404, 'api_key_not_found'])
  expect(await codeAt(project.id, params.key_id)).toEqual([404, 'api_key_not_found'])
  await api.send(archiveProject, { params: { project_id: project.id } })
  expect(await codeAt(project.id, params.key_id)).toEqual([409, 'project_archived'])
  await api.send(deleteProjectApiKey, { params })
  expect(await codeAt(params.project_id, params.key_id)).toEqual([404, 'api_key_not_found'])
})

test('a change of limits is announced as such, so that counts are kept; a repetition is not', async () => {
  const changes = () =>
    api.db.selectFrom('config_change').select(['kind', 'object_id']).orderBy('seq').execute()
  const before = (await changes()).length
  await setKey({ requests_per_minute: 5 })
  await setKey({ requests_per_minute: 5 })
  await setProject({ requests_per_minute: 5 })
  await changeOperatorLimits({ organizationId: organizationId() }, { tokens_per_day: 5 }, api.house)
  expect((await changes()).slice(before)).toEqual([
    { kind: 'limits', object_id: params.key_id },
    { kind: 'limits', object_id: params.project_id },
    { kind: 'limits', object_id: organizationId() },
  ])
})

test('the operator sets limits of every scope, above the tier too, and removes them', async () => {
  const organization = { organizationId: organizationId() }
  const project = { ...organization, projectId: params.project_id }
  const key = { ...organization, keyId: params.key_id }
  const set = await changeOperatorLimits(organization, { requests_per_minute: 9000 }, api.house)
  expect(set.result).toMatchObject({ scope: 'organization', changed: true })
  await changeOperatorLimits(project, { concurrent_requests: 400 }, api.house)
  await changeOperatorLimits(key, { tokens_per_minute: 7, requests_per_day: 8 }, api.house)
  await changeOperatorLimits(key, { requests_per_day: null }, api.house)
  const overrides = {
    organization: { requests_per_minute: 9000 },
    project: { concurrent_requests: 400 },
    key: { tokens_per_minute: 7 },
  }
  expect(await readWithKey()).toEqual(overrides)
  expect((await showLimits(organizationId(), api.house)).text).toBe(
    `organization  ${organizationId()}  requests_per_minute=9000\nproject  ${params.project_id}  concurrent_requests=400\nkey  ${params.key_id}  tokens_per_minute=7\n`,
  )
  const repeated = await changeOperatorLimits(key, { tokens_per_minute: 7 }, api.house)
  expect(repeated.result).toMatchObject({ changed: false })
  for (const each of [organization, project, key]) await changeOperatorLimits(each, null, api.house)
  expect(await rows()).toEqual([])
  expect((await showLimits(organizationId(), api.house)).text).toBe(
    "Nothing was set: the tier's limits hold.\n",
  )
})

test('the operator is told what does not exist', async () => {
  const change = (target: { organizationId: string; projectId?: string; keyId?: string }) =>
    changeOperatorLimits(target, { requests_per_minute: 1 }, api.house)
  const home = { organizationId: organizationId() }
  await expect(change({ organizationId: 'org_none' })).rejects.toThrow(
    "No organization has the id 'org_none'.",
  )
  await expect(change({ ...home, projectId: 'proj_none' })).rejects.toThrow(
    "no project with the id 'proj_none'",
  )
  await expect(change({ ...home, keyId: 'key_none' })).rejects.toThrow(
    "no active project key with the id 'key_none'",
  )
  await expect(showLimits('org_none', api.house)).rejects.toThrow(
    "No organization has the id 'org_none'.",
  )
})

test('GET limits shows each number with its source, and own limits of projects and keys that have calls', async () => {
  await changeOperatorLimits(
    { organizationId: organizationId() },
    { requests_per_minute: 9000 },
    api.house,
  )
  await setKey({ concurrent_requests: 2 })
  const [{ hash }] = api.house.hashKey(secret)
  const key = await findKeyByHash(api.db, [hash])
  const { slot } = await api.house.limits.limitInferenceCall({
    requestId: 'req_1',
    tokens: 5,
    principal: {
      kind: 'project_key',
      organizationId: organizationId(),
      projectId: params.project_id,
      credentialId: params.key_id,
      subject: params.key_id,
      userId: null,
      projectName: null,
      isBoundToProject: true,
      permissions: new Set(),
      plan: 'free',
      paidMicroUsd: 0,
      limitOverrides: key?.limit_overrides ?? null,
      budgets: null,
      allowedModels: null,
      projectLabels: null,
      member: null,
      session: null,
    },
  })
  const read = async () => (await api.send(readLimits)).body
  await expect
    .poll(read)
    .toMatchObject({ organization: { requests_per_minute: { limit: 9000, source: 'override' } } })
  const report = await read()
  expect(report).toMatchObject({
    organization: { requests_per_day: { limit: 20_000, used: 1, source: 'tier' } },
    each_key: { concurrent_requests: { limit: 4, source: 'tier' } },
    each_project: { tokens_per_day: { limit: null, source: 'tier' } },
    keys: [
      { key_id: params.key_id, concurrent_requests: { limit: 2, used: 1, source: 'override' } },
    ],
    projects: [
      { project_id: params.project_id, requests_per_minute: { limit: 90, source: 'tier' } },
    ],
  })
  expect(report).not.toHaveProperty('administration.requests_per_minute.source')
  await slot?.settle(5)
})
