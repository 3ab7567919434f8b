import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { readGatewayRollout } from '@gatehouse/contract/policy-gateway/gateway'
import { archiveProject, createProject } from '@gatehouse/contract/project'
import { beforeEach, expect, test } from 'vitest'

import { createLog } from '#platform/log.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey, createTestClock } from '#testing/test-gateway.ts'

import { canary, guardrailCalls, usual } from './testing/guardrail-calls.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
let calls: ReturnType<typeof guardrailCalls>
let clock: ReturnType<typeof createTestClock>
let logged: string[]
beforeEach(async () => {
  clock = createTestClock()
  logged = []
  const log = createLog('info', { write: (line) => logged.push(line) })
  api = await createTestApi({
    now: clock.now,
    findAddresses: async () => [],
    change: (house) => ({ ...house, log }),
  })
  calls = guardrailCalls(api)
})

const another = `whsec_${Buffer.from('another-secret-for-this-guard').toString('base64')}`

const readEvents = async () =>
  (await api.db.selectFrom('event').selectAll().orderBy('seq').execute())
    .filter(({ header }) => (header as { object?: string }).object === 'policy_gateway.guardrail')
    .map(({ header, payload }) => ({
      header: header as Record<string, unknown>,
      ...(JSON.parse(payload?.toString() ?? '') as { before: unknown; after: unknown }),
    }))

const readEpochs = async () =>
  (
    await api.db
      .selectFrom('policy_epoch')
      .select(['epoch', 'policy_id', 'gateway_revision'])
      .orderBy('epoch')
      .execute()
  ).map(({ epoch, gateway_revision }) => [Number(epoch), gateway_revision])

const readSecret = async (id: string) =>
  (
    await api.db
      .selectFrom('guardrail')
      .select('secret')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
  ).secret

const makeProject = async () => (await api.send(createProject, { body: { name: 'A' } })).body.id

test('201: a guardrail has its defaults, its secret reads as the mask, and it is read again', async () => {
  const made = await calls.create()
  expect(made.status).toBe(201)
  expect(made.guardrail).toEqual({
    id: expect.stringMatching(/^grd_[0-9a-hjkmnp-tv-z]{24}$/) as string,
    object: 'policy_gateway.guardrail',
    name: 'House',
    url: usual.url,
    secret: '********',
    enabled: true,
    mode: 'monitoring',
    on_error: 'refuse',
    deadline_ms: 2000,
    project_ids: null,
    managed_by: null,
    created_at: '2026-06-01T12:00:00Z',
    updated_at: '2026-06-01T12:00:00Z',
  })
  expect((await calls.read(made.guardrail.id)).guardrail).toEqual(made.guardrail)
  expect((await calls.list()).data).toEqual([made.guardrail])
})

test('201: what is given is kept', async () => {
  const given = {
    name: 'Other',
    enabled: false,
    mode: 'enforcing',
    on_error: 'allow',
    deadline_ms: 100,
    project_ids: [await makeProject(), await makeProject()],
  }
  expect((await calls.create(given)).guardrail).toMatchObject(given)
})

test('lists are paged in the order of creation', async () => {
  for (const name of ['a', 'b', 'c']) {
    await calls.create({ name })
    clock.pass(1000)
  }
  const names = async (query: Record<string, string>) => {
    const page = await calls.list(query)
    return [page.data.map(({ name }) => name).join(''), page.has_more]
  }
  expect(await names({})).toEqual(['abc', false])
  expect(await names({ limit: '2' })).toEqual(['ab', true])
  const [, second] = (await calls.list()).data
  expect(await names({ after: second!.id })).toEqual(['c', false])
  expect(await names({ order: 'desc', limit: '1' })).toEqual(['c', true])
})

const wrong: [body: object, code: string, param: string][] = [
  [{ name: '' }, 'invalid_parameter', 'body.name'],
  [{ name: 'x'.repeat(81) }, 'invalid_parameter', 'body.name'],
  [{ url: 'guard.example.com' }, 'invalid_parameter', 'body.url'],
  [{ url: `https://guard.example.com/${'x'.repeat(2048)}` }, 'invalid_parameter', 'body.url'],
  [{ secret: 'whsec_short' }, 'invalid_parameter', 'body.secret'],
  [{ secret: `${canary}\n` }, 'invalid_parameter', 'body.secret'],
  [{ enabled: 'yes' }, 'invalid_parameter', 'body.enabled'],
  [{ mode: 'shadow' }, 'invalid_parameter', 'body.mode'],
  [{ on_error: 'ignore' }, 'invalid_parameter', 'body.on_error'],
  [{ deadline_ms: 99 }, 'invalid_parameter', 'body.deadline_ms'],
  [{ deadline_ms: 5001 }, 'invalid_parameter', 'body.deadline_ms'],
  [{ deadline_ms: 100.5 }, 'invalid_parameter', 'body.deadline_ms'],
  [{ project_ids: [] }, 'invalid_parameter', 'body.project_ids'],
  [{ project_ids: Array(101).fill('proj_x') }, 'invalid_parameter', 'body.project_ids'],
  [{ project_ids: ['proj_x', 'proj_x'] }, 'invalid_parameter', 'body.project_ids'],
  [{ project_ids: ['proj_x'] }, 'unknown_project', 'body.project_ids[0]'],
  [{ timeout: 1 }, 'unknown_field', 'body.timeout'],
]

test('422: what is not allowed is refused, when created and when changed', async () => {
  const { id } = (await calls.create()).guardrail
  for (const [body, code, param] of wrong) {
    const answers = [await calls.create({ name: 'Other', ...body }), await calls.edit(id, body)]
    for (const { status, error } of answers) {
      expect([body, status, error.code, error.param]).toEqual([body, 422, code, param])
    }
    expect(JSON.stringify(answers)).not.toContain(canary)
  }
  expect((await calls.list()).data).toHaveLength(1)
})

test('422: name, address and secret are required, and the mask is no secret', async () => {
  for (const member of ['name', 'url', 'secret']) {
    const { status, error } = await calls.create({ [member]: undefined })
    expect([status, error.code, error.param]).toEqual([422, 'missing_field', `body.${member}`])
  }
  expect((await calls.create({ secret: '********' })).status).toBe(422)
  const { id } = (await calls.create()).guardrail
  expect((await calls.edit(id, {})).error.code).toBe('invalid_parameter')
})

test('422: a project that is archived cannot be given, and one that was given before may stay', async () => {
  const project_id = await makeProject()
  const { id } = (await calls.create({ project_ids: [project_id] })).guardrail
  await api.send(archiveProject, { params: { project_id } })
  expect((await calls.create({ name: 'B', project_ids: [project_id] })).status).toBe(422)
  const edited = await calls.edit(id, { mode: 'enforcing' })
  expect([edited.status, edited.guardrail.project_ids]).toEqual([200, [project_id]])
})

test('409: two guardrails of an organization have no common name', async () => {
  const { id } = (await calls.create()).guardrail
  const taken = await calls.create({ url: 'https://other.example.com' })
  expect([taken.status, taken.error.code, taken.error.param]).toEqual([
    409,
    'guardrail_name_taken',
    'body.name',
  ])
  const other = await calls.create({ name: 'Other' })
  expect((await calls.edit(other.guardrail.id, { name: 'House' })).status).toBe(409)
  expect((await calls.edit(id, { name: 'House', mode: 'enforcing' })).status).toBe(200)
  const both = await Promise.all([calls.create({ name: 'Same' }), calls.create({ name: 'Same' })])
  expect(new Set(both.map(({ status }) => status))).toEqual(new Set([201, 409]))
})

test('409: an organization has at most 10, also when many are created at once', async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => calls.create({ name: `Guardrail ${index}` })),
  )
  const refused = answers.filter(({ status }) => status !== 201)
  expect(refused.map(({ status, error }) => [status, error.code])).toEqual([
    [409, 'limit_reached'],
    [409, 'limit_reached'],
  ])
  const [first] = (await calls.list()).data
  await calls.remove(first!.id)
  expect((await calls.create({ name: 'Guardrail 12' })).status).toBe(201)
})

test('200: a change keeps what it leaves out, and one that changes nothing leaves no event', async () => {
  const { guardrail } = await calls.create({ mode: 'enforcing', deadline_ms: 700 })
  const sealed = await readSecret(guardrail.id)
  clock.pass(60_000)
  for (const secret of [undefined, '********', canary]) {
    const same = await calls.edit(guardrail.id, { deadline_ms: 700, secret })
    expect([same.status, same.guardrail]).toEqual([200, guardrail])
  }
  expect([await readEvents(), await readEpochs()]).toMatchObject([{ length: 1 }, { length: 1 }])
  const edited = await calls.edit(guardrail.id, { on_error: 'allow', url: `${usual.url}/v2` })
  expect(edited.guardrail).toEqual({
    ...guardrail,
    on_error: 'allow',
    url: `${usual.url}/v2`,
    updated_at: '2026-06-01T12:01:00Z',
  })
  expect(await readSecret(guardrail.id)).toEqual(sealed)
})

test('422: the stored secret is not used on another server: it has to be given again', async () => {
  const { id } = (await calls.create()).guardrail
  const elsewhere = [
    'https://other.example.com/check',
    'https://guard.example.com:8443/check',
    'https://guard.example.com.evil.example.com/check',
  ]
  for (const url of elsewhere) {
    for (const secret of [undefined, '********']) {
      const { status, error } = await calls.edit(id, { url, secret })
      expect([status, error.code, error.param]).toEqual([422, 'missing_field', 'body.secret'])
    }
  }
  expect((await calls.read(id)).guardrail.url).toBe(usual.url)
  // The same server, however it is written.
  const same = await calls.edit(id, { url: 'HTTPS://Guard.Example.com:443/elsewhere' })
  expect(same.status).toBe(200)
  const moved = await calls.edit(id, { url: elsewhere[0], secret: another })
  expect([moved.status, moved.guardrail.url]).toEqual([200, elsewhere[0]])
})

test('every change is an event without the secret, and a step that processes follow', async () => {
  const { guardrail } = await calls.create()
  const { id } = guardrail
  clock.pass(1000)
  const edited = (await calls.edit(id, { mode: 'enforcing', secret: another })).guardrail
  const { body } = await calls.remove(id)
  expect(body).toEqual({ id, object: 'policy_gateway.guardrail.deleted', deleted: true })
  expect((await calls.read(id)).status).toBe(404)
  const named = { object: 'policy_gateway.guardrail', object_id: id }
  expect(await readEvents()).toEqual([
    {
      header: expect.objectContaining({ action: 'created', ...named }) as object,
      before: null,
      after: guardrail,
    },
    {
      header: expect.objectContaining({
        action: 'updated',
        ...named,
        secrets_changed: ['secret'],
      }) as object,
      before: guardrail,
      after: edited,
    },
    {
      header: expect.objectContaining({ action: 'deleted', ...named }) as object,
      before: edited,
      after: null,
    },
  ])
  expect(await readEpochs()).toEqual([
    [1, 0],
    [2, 0],
    [3, 0],
  ])
  const rollout = (await api.send(readGatewayRollout)).body
  expect(rollout).toMatchObject({ revision: 0, policy_epoch: 3 })
})

test('a guardrail that is and was disabled changes nothing that is in force', async () => {
  const { id } = (await calls.create({ enabled: false })).guardrail
  await calls.edit(id, { mode: 'enforcing' })
  expect([await readEvents(), await readEpochs()]).toMatchObject([{ length: 2 }, []])
  await calls.edit(id, { enabled: true })
  await calls.edit(id, { enabled: false })
  await calls.remove(id)
  expect(await readEpochs()).toHaveLength(2)
})

test('a repeated request with an Idempotency-Key has its first answer, and one effect', async () => {
  const headers = { 'idempotency-key': 'k1' }
  const [first, again] = [await calls.create({}, { headers }), await calls.create({}, { headers })]
  expect([again.status, again.guardrail]).toEqual([201, first.guardrail])
  expect(again.headers['idempotent-replayed']).toBe('true')
  expect((await calls.list()).data).toHaveLength(1)
})

test('403: what may be read may not be written; project keys may do both', async () => {
  const body = { name: 'Reader', permissions: ['policy_gateway.read'] }
  const { value: credential } = (await api.send(createAdminApiKey, { body })).body
  const { id } = (await calls.create()).guardrail
  expect((await calls.read(id, { credential })).status).toBe(200)
  const refused = [
    await calls.create({ name: 'B' }, { credential }),
    await calls.edit(id, { name: 'B' }, { credential }),
    await calls.ask(id, {}, { credential }),
    await calls.remove(id, { credential }),
  ]
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403])
  const { organizationId } = api.organization
  const projectId = await makeProject()
  const key = await createProjectKey(
    api.house,
    { organizationId, projectId },
    {
      permissions: ['policy_gateway.read', 'policy_gateway.write'],
    },
  )
  const made = await calls.create({ name: 'B' }, { credential: key.value })
  expect(made.status).toBe(201)
})

test('the secret is in no answer, event or log line, and is sealed in the database', async () => {
  const { id } = (await calls.create()).guardrail
  const answers = [
    await calls.read(id),
    await calls.list(),
    await calls.edit(id, { secret: another }),
    await calls.create(),
    await calls.edit(id, { url: 'https://elsewhere.example.com' }),
    await calls.ask(id),
  ]
  const rows = await api.db.selectFrom('guardrail').selectAll().execute()
  const changes = await api.db.selectFrom('config_change').selectAll().execute()
  const stored = rows.map(({ secret, ...row }) => [secret.toString('latin1'), row])
  const seen = JSON.stringify([answers, await readEvents(), logged, stored, changes])
  expect(logged.length).toBeGreaterThan(0)
  for (const secret of [canary, another]) {
    const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64').toString()
    for (const form of [secret, secret.slice('whsec_'.length), bytes]) {
      expect(seen).not.toContain(form)
    }
  }
})
