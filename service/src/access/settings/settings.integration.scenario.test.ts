import {
  createAdminApiKey,
  createProjectApiKey,
  listProjectApiKeys,
} from '@gatehouse/contract/api-key'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import {
  readOrganizationSettings,
  updateOrganizationSettings,
} from '@gatehouse/contract/organization/settings'
import { AdminKeyPermission } from '@gatehouse/contract/permission'
import {
  approveGatewayProposal,
  createGatewayProposal,
} from '@gatehouse/contract/policy-gateway/proposals'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization, recoverOrganization } from '#access/manage-organizations.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

const clock = createTestClock()
const nowSeconds = () => Math.floor(clock.now().getTime() / 1000)

let api: Awaited<ReturnType<typeof createTestApi>>
let atFirst: Record<string, unknown>
beforeEach(async () => {
  api = await createTestApi({ now: clock.now })
  atFirst = {
    id: api.organization.organizationId,
    object: 'organization.settings',
    name: 'Example Ltd',
    publish_requires_approval: false,
    default_key_expiry_seconds: null,
    labels: {},
    revision: 1,
  }
})

const read = (credential?: string) =>
  api.send(readOrganizationSettings, credential === undefined ? {} : { credential })
const change = (body: object, headers: Record<string, string> = {}) =>
  api.send(updateOrganizationSettings, { body, headers })

test('200: a new organization has settings, with its name and the first revision', async () => {
  const { status, headers, body } = await read()
  expect([status, headers['etag'], body]).toEqual([200, '"1"', atFirst])
})

test('200: each member is changed alone, and each change is a revision', async () => {
  const steps: [edit: object, expected: object][] = [
    [{ name: ' Renamed Ltd ' }, { name: 'Renamed Ltd' }],
    [{ default_key_expiry_seconds: 60 }, { default_key_expiry_seconds: 60 }],
    [{ labels: { team: 'Search + co' } }, { labels: { team: 'Search + co' } }],
    [{ labels: { a: '1', b: '2' } }, { labels: { a: '1', b: '2' } }],
    [{ default_key_expiry_seconds: null }, { default_key_expiry_seconds: null }],
    [{ labels: {} }, { labels: {} }],
  ]
  let expected = atFirst
  for (const [index, [edit, changed]] of steps.entries()) {
    expected = { ...expected, ...changed, revision: index + 2 }
    const { status, headers, body } = await change(edit)
    expect([status, headers['etag'], body]).toEqual([200, `"${index + 2}"`, expected])
    expect((await read()).body).toEqual(expected)
  }
})

test('200: what changes nothing is no revision and leaves no event', async () => {
  await change({ name: 'New', labels: { b: '2', a: '1' } })
  const { body } = await read()
  const same = [
    {},
    { name: null, labels: null, publish_requires_approval: null },
    { labels: { a: '1', b: '2' } },
    { name: 'New', publish_requires_approval: false, default_key_expiry_seconds: null },
  ]
  for (const edit of same) expect(await change(edit)).toMatchObject({ status: 200, body })
  const { data } = (await api.send(listAuditEvents)).body as unknown as { data: object[] }
  const ofSettings = data.filter((event) => JSON.stringify(event).includes('organization.settings'))
  expect(ofSettings).toMatchObject([
    {
      payload: {
        before: { name: 'Example Ltd', revision: 1 },
        after: { name: 'New', labels: { a: '1', b: '2' }, revision: 2 },
      },
    },
  ])
})

test('409: a change of another revision changes nothing', async () => {
  const { etag } = (await read()).headers
  expect((await change({ name: 'First' }, { 'if-match': String(etag) })).status).toBe(200)
  const refused = await change({ name: 'Second' }, { 'if-match': String(etag) })
  expect(refused).toMatchObject({
    status: 409,
    headers: { 'x-should-retry': 'false' },
    body: { error: { code: 'revision_conflict', param: 'header.If-Match' } },
  })
  expect((await read()).body).toMatchObject({ name: 'First', revision: 2 })
  expect((await change({ name: 'Third' }, { 'if-match': '*' })).body).toMatchObject({ revision: 3 })
  expect((await change({ name: 'Fourth' }, { 'if-match': '"2", W/"3"' })).status).toBe(200)
})

test('of many changes of one revision one is made', async () => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      change({ name: `Name ${index}` }, { 'if-match': '"1"' }),
    ),
  )
  const counts = Map.groupBy(answers, ({ status }) => status)
  expect([counts.get(200)?.length, counts.get(409)?.length]).toEqual([1, 7])
  expect((await read()).body).toMatchObject({ revision: 2 })
})

test('422: two persons cannot be asked for where there are not two', async () => {
  expect(await change({ name: 'Other', publish_requires_approval: true })).toMatchObject({
    status: 422,
    body: { error: { code: 'invalid_parameter', param: 'body.publish_requires_approval' } },
  })
  expect((await read()).body).toEqual(atFirst)
})

test('two persons are asked for by one, and released by a proposal or by an owner with a reason', async () => {
  const join = (role: 'owner' | 'admin') =>
    createMemberSession(api.house, { organizationId: api.organization.organizationId, role })
  const [owner, admin] = [await join('owner'), await join('admin')]
  const rule = async (is: boolean, more: object = {}, { token } = admin) => {
    const body = { publish_requires_approval: is, ...more }
    const answer = await api.send(updateOrganizationSettings, { credential: token, body })
    return [answer.status, answer.body.error?.code]
  }
  expect(await rule(true)).toEqual([200, undefined])
  expect(await rule(false)).toEqual([409, 'approval_required'])
  const glass = { break_glass: true, reason: 'The other person has left.' }
  expect(await rule(false, glass)).toEqual([403, 'permission_denied'])
  expect(await rule(false, glass, owner)).toEqual([200, undefined])
  expect(await rule(true)).toEqual([200, undefined])
  const proposed = await api.send(createGatewayProposal, {
    credential: admin.token,
    body: { settings: { publish_requires_approval: false } },
  })
  const { id: proposal_id } = (proposed.body as unknown as { proposal: { id: string } }).proposal
  const params = { proposal_id }
  const approve = ({ token }: { token: string }) =>
    api.send(approveGatewayProposal, { credential: token, params })
  expect((await approve(admin)).status).toBe(403)
  expect((await approve(owner)).status).toBe(200)
  expect((await read()).body).toMatchObject({ publish_requires_approval: false })
})

test.each([
  [{ name: '' }, 'body.name'],
  [{ default_key_expiry_seconds: 0 }, 'body.default_key_expiry_seconds'],
  [{ default_key_expiry_seconds: 315_360_001 }, 'body.default_key_expiry_seconds'],
  [{ labels: { 'a=b': '1' } }, 'body.labels.a=b'],
  [{ labels: { team: '' } }, 'body.labels.team'],
  [{ labels: { team: ' search' } }, 'body.labels.team'],
  [{ labels: { team: 'Größe' } }, 'body.labels.team'],
  [{ labels: { team: 'x'.repeat(64) } }, 'body.labels.team'],
  [{ labels: { ['x'.repeat(64)]: '1' } }, `body.labels.${'x'.repeat(64)}`],
  [
    { labels: Object.fromEntries(Array.from({ length: 21 }, (_, each) => [each, '1'])) },
    'body.labels',
  ],
])('422: %j', async (edit, param) => {
  expect(await change(edit)).toMatchObject({
    status: 422,
    body: { error: { code: 'invalid_parameter', param } },
  })
  expect((await read()).body).toEqual(atFirst)
})

test('403: reading needs projects.read, and changing admin_api_keys.write', async () => {
  const keyWith = async (permissions: string[]) =>
    (await api.send(createAdminApiKey, { body: { name: 'Some', permissions } })).body.value
  const others = AdminKeyPermission.options.filter((each) => each !== 'admin_api_keys.write')
  const credential = await keyWith(others)
  expect((await read(credential)).status).toBe(200)
  const refused = await api.send(updateOrganizationSettings, { credential, body: { name: 'No' } })
  expect([refused.status, refused.body.error.code]).toEqual([403, 'permission_denied'])
  expect((await read(await keyWith(['policies.read']))).status).toBe(403)
})

test('each organization reads and changes its own', async () => {
  const { adminKey } = await createOrganization('Other Ltd', api.house)
  await change({ labels: { team: 'search' } })
  expect((await read(adminKey)).body).toMatchObject({ name: 'Other Ltd', labels: {}, revision: 1 })
})

test('new keys without an expiry get the default one, and no others', async () => {
  const params = { project_id: api.organization.projectId }
  const before = await api.send(createProjectApiKey, { params, body: { name: 'Before' } })
  await change({ default_key_expiry_seconds: 3600 })
  const makers = {
    project: (body: object) =>
      api.send(createProjectApiKey, { params, body: { name: 'Key', ...body } }),
    admin: (body: object) =>
      api.send(createAdminApiKey, { body: { name: 'Key', permissions: [], ...body } }),
  }
  for (const make of Object.values(makers)) {
    const usual = { expires_at: nowSeconds() + 3600 }
    expect((await make({})).body).toMatchObject(usual)
    expect((await make({ expires_in_seconds: null })).body).toMatchObject(usual)
    expect((await make({ expires_in_seconds: 9 })).body).toMatchObject({
      expires_at: nowSeconds() + 9,
    })
    const longer = { expires_in_seconds: 7200 }
    expect((await make(longer)).body).toMatchObject({ expires_at: nowSeconds() + 7200 })
  }
  expect(before.body).not.toHaveProperty('expires_at')
  const { data } = (await api.send(listProjectApiKeys, { params })).body
  expect(data.find(({ id }) => id === before.body.id)).not.toHaveProperty('expires_at')
  const recovered = await recoverOrganization(api.organization.organizationId, api.house)
  clock.pass(3_700_000)
  expect((await read(recovered?.adminKey)).status).toBe(200)
  await change({ default_key_expiry_seconds: null })
  expect((await makers.project({})).body).not.toHaveProperty('expires_at')
})
