import {
  archiveProject,
  createProject,
  listProjects,
  retrieveProject,
  updateProject,
} from '@gatehouse/contract/project'
import { beforeEach, expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
})

const create = async (name: string) => (await api.send(createProject, { body: { name } })).body
const at = (id: string) => ({ params: { project_id: id } })

test('an organization starts with a project named Default', async () => {
  const { body } = await api.send(listProjects)
  expect(body.data).toMatchObject([{ id: api.organization.projectId, name: 'Default' }])
})

test('201, 200: a project is created, read and renamed; names are trimmed', async () => {
  const made = await create('  Support desk  ')
  expect(made).toMatchObject({ name: 'Support desk', status: 'active', archived_at: null })
  const renamed = await api.send(updateProject, { ...at(made.id), body: { name: 'Help desk' } })
  expect(renamed.body).toEqual({ ...made, name: 'Help desk' })
  expect((await api.send(retrieveProject, at(made.id))).body).toEqual(renamed.body)
})

test('200: a null or absent name changes nothing', async () => {
  const made = await create('Same')
  for (const body of [{}, { name: null }]) {
    expect((await api.send(updateProject, { ...at(made.id), body })).body).toEqual(made)
  }
})

test.each([
  [{ name: '' }, 'invalid_parameter', 'body.name'],
  [{ name: '   ' }, 'invalid_parameter', 'body.name'],
  [{ name: 'x'.repeat(81) }, 'invalid_parameter', 'body.name'],
  [{ name: '💥'.repeat(81) }, 'invalid_parameter', 'body.name'],
  [{ name: 'a\0b' }, 'invalid_parameter', 'body.name'],
  [{ name: 1 }, 'invalid_parameter', 'body.name'],
  [{}, 'missing_field', 'body.name'],
  [{ name: 'x', status: 'archived' }, 'unknown_field', 'body.status'],
])('422: %j', async (body, code, param) => {
  const answer = await api.send(createProject, { body })
  expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([
    422,
    code,
    param,
  ])
})

test('labels are given, replaced and removed as a whole, and kept by all other changes', async () => {
  const made = await api.send(createProject, {
    body: { name: 'Labelled', labels: { team: 'search', cost_center: '4711' } },
  })
  expect(made.body).toMatchObject({ labels: { team: 'search', cost_center: '4711' } })
  const { id } = made.body
  const steps: [edit: object, labels: object][] = [
    [{ name: 'Other' }, { team: 'search', cost_center: '4711' }],
    [{ labels: null }, { team: 'search', cost_center: '4711' }],
    [{ labels: { region: 'eu-central/1' } }, { region: 'eu-central/1' }],
    [{ monthly_budget: { credits: 1 } }, { region: 'eu-central/1' }],
    [{ labels: {} }, {}],
  ]
  for (const [body, labels] of steps) {
    expect((await api.send(updateProject, { ...at(id), body })).body).toMatchObject({ id, labels })
    const read = (await api.send(retrieveProject, at(id))).body as unknown as { labels: object }
    expect(read.labels).toEqual(labels)
  }
  expect(await create('None')).toMatchObject({ labels: {} })
  const refused = await api.send(createProject, { body: { name: 'x', labels: { 'a b': '1' } } })
  expect([refused.status, refused.body.error.param]).toEqual([422, 'body.labels.a b'])
})

test('a name of 80 code points fits, whatever its bytes', async () => {
  for (const name of ['x'.repeat(80), '💥'.repeat(80)]) {
    expect(await create(name)).toMatchObject({ name })
  }
})

test('archiving is final, idempotent, and announced to every process', async () => {
  const made = await create('Old')
  const archived = await api.send(archiveProject, at(made.id))
  expect(archived.body).toMatchObject({
    status: 'archived',
    archived_at: expect.any(Number) as number,
  })
  expect((await api.send(archiveProject, at(made.id))).body).toEqual(archived.body)
  const renamed = await api.send(updateProject, { ...at(made.id), body: { name: 'New' } })
  expect([renamed.status, renamed.body.error.code]).toEqual([409, 'project_archived'])
  const changes = await api.db.selectFrom('config_change').select(['kind', 'object_id']).execute()
  expect(changes).toEqual([{ kind: 'project', object_id: made.id }])
})

test('409: the default project cannot be archived', async () => {
  const answer = await api.send(archiveProject, at(api.organization.projectId))
  expect([answer.status, answer.body.error.code]).toEqual([409, 'default_project'])
})

test('404: a project that does not exist', async () => {
  for (const endpoint of [retrieveProject, archiveProject]) {
    const answer = await api.send(endpoint, at('proj_none'))
    expect([answer.status, answer.body.error.code]).toEqual([404, 'project_not_found'])
  }
})
