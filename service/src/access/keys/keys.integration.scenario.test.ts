import {
  createAdminApiKey,
  createProjectApiKey,
  deleteAdminApiKey,
  deleteProjectApiKey,
  listAdminApiKeys,
  listProjectApiKeys,
} from '@gatehouse/contract/api-key'
import { archiveProject, createProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
})

const makeAdmin = (permissions: string[], credential?: string) =>
  api.send(createAdminApiKey, {
    body: { name: 'Key', permissions },
    ...(credential && { credential }),
  })

test('201: a new administrator key works at once, and its secret is stored nowhere', async () => {
  const { status, body } = await makeAdmin(['projects.read', 'projects.read'])
  expect([status, body.permissions]).toEqual([201, ['projects.read']])
  const listed = await api.send(listAdminApiKeys)
  expect(listed.body.data.map(({ name }) => name)).toEqual(['First administrator key', 'Key'])
  expect(JSON.stringify(listed.body)).not.toContain(body.value)
  const rows = await api.db.selectFrom('api_key').selectAll().execute()
  const stored = rows.map((row) => JSON.stringify(row) + row.key_hash.toString('latin1')).join()
  expect(stored).not.toContain(body.value.slice(9, 52))
})

test('403: a key never grants more than its creator has', async () => {
  const { body } = await makeAdmin(['admin_api_keys.write', 'projects.read'])
  const wider = await makeAdmin(['projects.read', 'policies.write'], body.value)
  expect([wider.status, wider.body.error.code]).toEqual([403, 'permission_denied'])
  expect(wider.headers['www-authenticate']).toContain('scope="policies.write"')
  expect((await makeAdmin(['projects.read'], body.value)).status).toBe(201)
})

test('422: administrator keys cannot call models, and unknown permissions do not exist', async () => {
  for (const [permission, param] of [
    ['model.invoke', 'body.permissions[0]'],
    ['everything', 'body.permissions[0]'],
  ] as const) {
    const { status, body } = await makeAdmin([permission])
    expect([status, body.error.param]).toEqual([422, param])
  }
})

test('409: the fifty-first administrator key, also when many are created at once', async () => {
  const results = await Promise.all(Array.from({ length: 60 }, () => makeAdmin([])))
  expect(results.filter(({ status }) => status === 201)).toHaveLength(49)
  const refused = results.filter(({ status }) => status === 409)
  expect(new Set(refused.map(({ body }) => body.error.code))).toEqual(new Set(['limit_reached']))
  expect(refused[0]?.headers['x-should-retry']).toBe('false')
})

test('409: the last key that manages keys cannot be deleted, also when two are deleted at once', async () => {
  const first = (await api.send(listAdminApiKeys)).body.data[0]?.id ?? ''
  const alone = await api.send(deleteAdminApiKey, { params: { key_id: first } })
  expect([alone.status, alone.body.error.code]).toEqual([409, 'last_admin_key'])
  const { body: second } = await makeAdmin(['admin_api_keys.write'])
  await makeAdmin([]) // cannot manage keys: does not count
  const both = await Promise.all(
    [first, second.id].map((key_id) => api.send(deleteAdminApiKey, { params: { key_id } })),
  )
  expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200, 409]))
})

test('a key that expires does not count as the last manager once it has expired', async () => {
  const { body } = await api.send(createAdminApiKey, {
    body: { name: 'Short', permissions: ['admin_api_keys.write'], expires_in_seconds: 1 },
  })
  await new Promise((resolve) => setTimeout(resolve, 1100))
  const first = (await api.send(listAdminApiKeys)).body
  expect(first.data.map(({ id }) => id)).toContain(body.id) // expired keys are listed, revoked ones are not
  const removed = await api.send(deleteAdminApiKey, { params: { key_id: first.data[0]?.id ?? '' } })
  expect(removed.status).toBe(409)
})

test('404: a revoked key cannot be revoked again, and is no longer listed', async () => {
  const { body } = await makeAdmin([])
  const params = { key_id: body.id }
  const deleted = await api.send(deleteAdminApiKey, { params })
  expect(deleted.body).toEqual({
    id: body.id,
    object: 'organization.admin_api_key.deleted',
    deleted: true,
  })
  const again = await api.send(deleteAdminApiKey, { params })
  expect([again.status, again.body.error.code]).toEqual([404, 'api_key_not_found'])
  expect((await api.send(listAdminApiKeys)).body.data).toHaveLength(1)
})

test('pages: no duplicate and no gap in both orders, and a revoked cursor keeps its place', async () => {
  const made = ['0']
  for (let index = 0; index < 9; index++) made.push((await makeAdmin([])).body.id)
  const all = (await api.send(listAdminApiKeys)).body.data.map(({ id }) => id)
  expect(all.slice(1)).toEqual(made.slice(1))
  for (const order of ['asc', 'desc']) {
    const seen: string[] = []
    for (let after: string | null = null; ;) {
      const query = { limit: '3', order, ...(after && { after }) }
      const { body } = await api.send(listAdminApiKeys, { query })
      expect([body.first_id, body.last_id]).toEqual([body.data[0]?.id, body.data.at(-1)?.id])
      seen.push(...body.data.map(({ id }) => id))
      if (!body.has_more) break
      after = body.last_id
    }
    expect(seen).toEqual(order === 'asc' ? all : all.toReversed())
  }
  const cursor = all[4] ?? ''
  await api.send(deleteAdminApiKey, { params: { key_id: cursor } })
  const rest = await api.send(listAdminApiKeys, { query: { after: cursor } })
  expect(rest.body.data.map(({ id }) => id)).toEqual(all.slice(5))
  const end = await api.send(listAdminApiKeys, { query: { after: all.at(-1) ?? '' } })
  expect(end.body).toMatchObject({ data: [], has_more: false, first_id: null, last_id: null })
})

const inProject = (projectId = api.organization.projectId) => ({
  params: { project_id: projectId },
})

test('201: a project key gets the default permissions, or fewer, or what its creator has', async () => {
  const plain = await api.send(createProjectApiKey, { ...inProject(), body: { name: 'Plain' } })
  expect(plain.body.permissions).toEqual(['model.invoke', 'credits.read', 'policy_gateway.read'])
  const none = { name: 'None', permissions: [] }
  expect((await api.send(createProjectApiKey, { ...inProject(), body: none })).status).toBe(201)
  const { body: writer } = await makeAdmin(['projects.write'])
  const grant = (permissions: string[]) =>
    api.send(createProjectApiKey, {
      ...inProject(),
      body: { name: 'Granted', permissions },
      credential: writer.value,
    })
  expect((await grant(['model.invoke'])).status).toBe(201)
  expect((await grant(['exports.write'])).status).toBe(403)
})

test('keys of one project are not found in another', async () => {
  const { body: other } = await api.send(createProject, { body: { name: 'Other' } })
  const { body: key } = await api.send(createProjectApiKey, { ...inProject(), body: { name: 'K' } })
  const params = { project_id: other.id, key_id: key.id }
  const wrong = await api.send(deleteProjectApiKey, { params })
  expect([wrong.status, wrong.body.error.code]).toEqual([404, 'api_key_not_found'])
  expect((await api.send(listProjectApiKeys, inProject(other.id))).body.data).toEqual([])
  const cursor = await api.send(listProjectApiKeys, {
    ...inProject(other.id),
    query: { after: key.id },
  })
  expect([cursor.status, cursor.body.error.code]).toEqual([400, 'invalid_cursor'])
  const right = { project_id: api.organization.projectId, key_id: key.id }
  expect((await api.send(deleteProjectApiKey, { params: right })).status).toBe(200)
})

test('409: an archived project takes no new keys, but they can still be listed and revoked', async () => {
  const { body: project } = await api.send(createProject, { body: { name: 'Old' } })
  const { body: key } = await api.send(createProjectApiKey, {
    ...inProject(project.id),
    body: { name: 'K' },
  })
  await api.send(archiveProject, inProject(project.id))
  const refused = await api.send(createProjectApiKey, {
    ...inProject(project.id),
    body: { name: 'L' },
  })
  expect([refused.status, refused.body.error.code]).toEqual([409, 'project_archived'])
  expect((await api.send(listProjectApiKeys, inProject(project.id))).body.data).toHaveLength(1)
  const params = { project_id: project.id, key_id: key.id }
  expect((await api.send(deleteProjectApiKey, { params })).status).toBe(200)
})

test('a permission of a newer release is left out and causes no error', async () => {
  const { body } = await makeAdmin(['projects.read'])
  const permissions = ['projects.read', 'teleport.write']
  await api.db.updateTable('api_key').set({ permissions }).where('id', '=', body.id).execute()
  const listed = await api.send(listAdminApiKeys)
  expect(listed.status).toBe(200)
  expect(listed.body.data.at(-1)).toMatchObject({ id: body.id, permissions: ['projects.read'] })
})

test('rows written by hand, a microsecond apart, are paged like any others', async () => {
  await makeAdmin([])
  await makeAdmin([])
  await sql`update api_key set created_at = '2026-01-01 00:00:00.123456'::timestamptz + random() * interval '1 ms'`.execute(
    api.db,
  )
  const seen: string[] = []
  for (let after: string | null = null, page = 0; page < 5; page++) {
    const { body } = await api.send(listAdminApiKeys, {
      query: { limit: '1', ...(after && { after }) },
    })
    seen.push(...body.data.map(({ id }) => id))
    if (!body.has_more) break
    after = body.last_id
  }
  expect([seen.length, new Set(seen).size]).toEqual([3, 3])
})

test('403: a member who was demoted a moment ago makes no key, although the session does not know it yet', async () => {
  const { organizationId } = api.organization
  const { token, memberId } = await createMemberSession(api.house, {
    organizationId,
    role: 'admin',
  })
  expect((await makeAdmin(['projects.read'], token)).status).toBe(201)
  // Without a notice to the processes.
  await api.db.updateTable('member').set({ role: 'viewer' }).where('id', '=', memberId).execute()
  const { status, body } = await makeAdmin(['projects.read'], token)
  expect([status, body.error?.code]).toEqual([403, 'permission_denied'])
})
