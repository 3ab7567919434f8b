import { dirname } from 'node:path'

import {
  createProjectApiKey,
  listProjectApiKeys,
  updateProjectApiKey,
} from '@gatehouse/contract/api-key'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import {
  createProject,
  listProjects,
  retrieveProject,
  updateProject,
} from '@gatehouse/contract/project'
import { beforeEach, expect, test } from 'vitest'

import { writeCatalogueOfOne } from '#testing/catalogue-of-one.ts'
import { createTestApi } from '#testing/test-api.ts'

// How administrators say which models a project or a key may use. The catalogue has one model, `m`, alias `newest`.

let api: Awaited<ReturnType<typeof createTestApi>>
let params: { project_id: string; key_id: string }
beforeEach(async () => {
  const MODELS_FILE = await writeCatalogueOfOne('http://127.0.0.1:9/v1', { aliases: ['newest'] })
  api = await createTestApi({ environment: { MODELS_FILE, STATE_DIRECTORY: dirname(MODELS_FILE) } })
  const { body: project } = await api.send(createProject, { body: { name: 'New' } })
  const made = { params: { project_id: project.id }, body: { name: 'Caller' } }
  const { body: key } = await api.send(createProjectApiKey, made)
  params = { project_id: project.id, key_id: key.id }
})

/** What is changed, and how it is read. */
const subjects = {
  project: {
    change: (body: object) => api.send(updateProject, { params, body }),
    read: async () => (await api.send(retrieveProject, { params })).body,
    create: (body: object) => api.send(createProject, { body: { name: 'Other', ...body } }),
  },
  key: {
    change: (body: object) => api.send(updateProjectApiKey, { params, body }),
    read: async () => (await api.send(listProjectApiKeys, { params })).body.data[0],
    create: (body: object) =>
      api.send(createProjectApiKey, { params, body: { name: 'Other', ...body } }),
  },
}

test.each(Object.entries(subjects))(
  '200: the list of a %s is set, kept, emptied and removed',
  async (_, { change, read }) => {
    expect(await read()).toMatchObject({ allowed_models: null })
    const steps: [edit: object, expected: string[] | null][] = [
      [{ allowed_models: ['m'] }, ['m']],
      [{}, ['m']],
      [{ limits: { requests_per_day: 9 } }, ['m']],
      [{ monthly_budget: { credits: 9 } }, ['m']],
      [{ allowed_models: [] }, []],
      [{ allowed_models: ['newest', 'm', 'newest'], monthly_budget: null }, ['m']],
      [{ allowed_models: null }, null],
      [{ limits: null }, null],
    ]
    for (const [edit, allowed_models] of steps) {
      expect(await change(edit), JSON.stringify(edit)).toMatchObject({
        status: 200,
        body: { allowed_models },
      })
      expect(await read()).toMatchObject({ allowed_models })
    }
  },
)

test.each(Object.entries(subjects))('201: a %s is created with a list', async (_, { create }) => {
  const made = await create({ allowed_models: ['newest'] })
  expect(made).toMatchObject({ status: 201, body: { allowed_models: ['m'] } })
  expect(await create({ allowed_models: [] })).toMatchObject({ body: { allowed_models: [] } })
  expect(await create({ allowed_models: null })).toMatchObject({ body: { allowed_models: null } })
})

test.each(Object.entries(subjects))(
  '422: the list of a %s names an unknown model, and nothing changes',
  async (_, { change, read, create }) => {
    await change({ allowed_models: ['m'] })
    const before = await read()
    const body = { allowed_models: ['m', 'none'], limits: { requests_per_day: 3 } }
    const refusal = {
      status: 422,
      body: {
        error: {
          code: 'invalid_parameter',
          param: 'body.allowed_models.1',
          message:
            "'body.allowed_models.1' is 'none', which names no model; GET /v1/organization/models lists the models.",
        },
      },
    }
    expect(await change(body)).toMatchObject(refusal)
    expect(await create({ allowed_models: body.allowed_models })).toMatchObject(refusal)
    expect(await read()).toEqual(before)
    expect((await api.send(listProjects)).body.data).toHaveLength(2)
  },
)

test.each([
  ['too many names', Array.from({ length: 501 }, () => 'm')],
  ['an empty name', ['']],
  ['a name that is too long', ['m'.repeat(201)]],
  ['a number', [1]],
  ['a text', 'm'],
])('422: %s', async (_, allowed_models) => {
  for (const { change } of Object.values(subjects)) {
    const { status, body } = await change({ allowed_models })
    expect([status, body.error.code]).toEqual([422, 'invalid_parameter'])
  }
})

test('a change leaves one event with both lists, and a repetition none', async () => {
  for (const { change } of Object.values(subjects)) {
    await change({ allowed_models: ['m'] })
    await change({ allowed_models: ['newest'] })
    const { body } = await api.send(listAuditEvents, { query: { limit: '1' } })
    expect(body.data).toMatchObject([
      { payload: { before: { allowed_models: null }, after: { allowed_models: ['m'] } } },
    ])
  }
  const { data } = (await api.send(listAuditEvents)).body as unknown as {
    data: { action: string }[]
  }
  expect(data.filter(({ action }) => action === 'updated')).toHaveLength(2)
})
