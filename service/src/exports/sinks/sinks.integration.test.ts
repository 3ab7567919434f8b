import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { secretMembers, sinkTypes } from '@gatehouse/contract/exports/sink-config'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createLog } from '#platform/log.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey, createTestClock } from '#testing/test-gateway.ts'

import { sinkCalls, splunk, token } from './testing/sink-calls.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
let calls: ReturnType<typeof sinkCalls>
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
  calls = sinkCalls(api)
})

const readEvents = async () =>
  (await api.db.selectFrom('event').selectAll().orderBy('seq').execute())
    .filter(({ header }) => (header as { object?: string }).object === 'policy_gateway.export')
    .map(({ header, payload }) => ({
      header: header as Record<string, unknown>,
      ...(JSON.parse(payload?.toString() ?? '') as { before: unknown; after: unknown }),
    }))

const splunkDefaults = {
  sourcetype: 'policy_gateway_audit',
  source: 'policy-gateway',
  ack: false,
  verify_tls: true,
}

test('201: a sink has its defaults, its secrets read as the mask, and it is read again', async () => {
  const made = await calls.create(splunk)
  expect(made.status).toBe(201)
  expect(made.export).toEqual({
    id: expect.stringMatching(/^exp_[0-9a-hjkmnp-tv-z]{24}$/) as string,
    object: 'policy_gateway.export',
    type: 'splunk_hec',
    label: 'splunk_hec',
    enabled: true,
    config: { ...splunk.config, token: '********', ...splunkDefaults },
    managed_by: null,
    created_at: '2026-06-01T12:00:00Z',
    updated_at: '2026-06-01T12:00:00Z',
    last_success_at: null,
    last_error_at: null,
    last_error: null,
    state: 'ok',
    lag_seconds: 0,
    pending_events: 0,
    dead_letters: 0,
  })
  expect((await calls.read(made.export.id)).export).toEqual(made.export)
  expect((await calls.list()).data).toEqual([made.export])
})

const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const endpoint = 'https://logs.example.com'
const azure = {
  endpoint,
  dcr_immutable_id: 'dcr-1',
  stream_name: 'Custom-Audit',
  tenant_id: 'tenant',
  client_id: 'client',
  client_secret: token,
}
const s3 = {
  bucket: 'audit',
  region: 'eu-central-1',
  access_key_id: 'id',
  secret_access_key: token,
}
const smallest: Record<string, Record<string, unknown>> = {
  splunk_hec: splunk.config,
  datadog_logs: { api_key: token },
  elastic: { endpoint, username: 'me', password: token },
  s3,
  azure_monitor: azure,
  otlp_logs: { endpoint, header_value: `Bearer ${token}` },
  webhook: { endpoint, secret },
}

test('the smallest configuration of every type is accepted and masked', async () => {
  for (const type of sinkTypes) {
    const { status, export: made } = await calls.create({ type, config: smallest[type] })
    expect([type, status]).toEqual([type, 201])
    const given = secretMembers[type].filter((name) => name in smallest[type]!)
    expect(given).not.toEqual([])
    for (const name of given) expect([type, made.config[name]]).toEqual([type, '********'])
  }
})

test('lists are paged in the order of creation', async () => {
  for (const label of ['a', 'b', 'c']) {
    await calls.create({ ...splunk, label })
    clock.pass(1000)
  }
  const labels = async (query: Record<string, string>) => {
    const page = await calls.list(query)
    return [page.data.map(({ label }) => label).join(''), page.has_more]
  }
  expect(await labels({})).toEqual(['abc', false])
  expect(await labels({ limit: '2' })).toEqual(['ab', true])
  const [, second] = (await calls.list()).data
  expect(await labels({ after: second!.id })).toEqual(['c', false])
  expect(await labels({ order: 'desc', limit: '1' })).toEqual(['c', true])
})

const wrong: [type: string, config: object, code: string, member: string][] = [
  ['splunk_hec', { ...splunk.config, tokn: 'x' }, 'unknown_field', '.tokn'],
  ['splunk_hec', { ...splunk.config, tokn: null }, 'unknown_field', '.tokn'],
  ['splunk_hec', { endpoint }, 'missing_field', '.token'],
  ['splunk_hec', { ...splunk.config, token: '********' }, 'missing_field', '.token'],
  ['splunk_hec', { ...splunk.config, token: null }, 'missing_field', '.token'],
  ['splunk_hec', { token }, 'missing_field', '.endpoint'],
  ['splunk_hec', { ...splunk.config, token: 'canary\ntoken' }, 'invalid_export_config', '.token'],
  ['splunk_hec', { ...splunk.config, token: 'canary7' }, 'invalid_export_config', '.token'],
  ['splunk_hec', { ...splunk.config, ack: 'yes' }, 'invalid_export_config', '.ack'],
  ['splunk_hec', { ...splunk.config, verify_tls: false }, 'invalid_export_config', '.verify_tls'],
  ['datadog_logs', { api_key: token, tags: ['a,b'] }, 'invalid_export_config', '.tags[0]'],
  ['datadog_logs', { api_key: token, site: 'x/y.com' }, 'invalid_export_config', '.site'],
  ['elastic', { endpoint }, 'invalid_export_config', '.api_key'],
  ['elastic', { endpoint, username: 'me' }, 'invalid_export_config', '.password'],
  ['elastic', { endpoint, password: token }, 'invalid_export_config', '.username'],
  ['elastic', { endpoint, api_key: token, username: 'me' }, 'invalid_export_config', '.api_key'],
  [
    'elastic',
    { endpoint, api_key: token, index: 'a', dataset: 'b' },
    'invalid_export_config',
    '.index',
  ],
  ['elastic', { endpoint, api_key: token, ca_cert: 'x' }, 'invalid_export_config', '.ca_cert'],
  ['s3', { ...s3, sse: 'aws:kms' }, 'invalid_export_config', '.kms_key_id'],
  ['s3', { ...s3, sse: 'none' }, 'invalid_export_config', '.sse'],
  ['s3', { ...s3, bucket: 'a..b' }, 'invalid_export_config', '.bucket'],
  ['azure_monitor', { workspace_id: 'w' }, 'invalid_export_config', '.workspace_id'],
  ['azure_monitor', { ...azure, shared_key: 'k' }, 'invalid_export_config', '.shared_key'],
  [
    'otlp_logs',
    { endpoint, header_value: 'canary\r\nb: c' },
    'invalid_export_config',
    '.header_value',
  ],
  ['otlp_logs', { endpoint, header_value: 'canary Ā' }, 'invalid_export_config', '.header_value'],
  ['otlp_logs', { endpoint, header_name: 'Host' }, 'invalid_export_config', '.header_name'],
  ['webhook', { endpoint, secret: token }, 'invalid_export_config', '.secret'],
]

test('422: a wrong configuration is refused with the name of its member, and not with its value', async () => {
  for (const [type, config, code, member] of wrong) {
    const { status, error } = await calls.create({ type, config })
    const answer = [type, config, status, error.code, error.param]
    expect(answer).toEqual([type, config, 422, code, `body.config${member}`])
    expect(error.message).not.toContain(token)
  }
  expect((await calls.list()).data).toEqual([])
})

const ports = {
  splunk_hec: [443, 8088],
  elastic: [443, 9200, 9243],
  s3: [443, 9000],
  otlp_logs: [443, 4318],
  webhook: [443, 8443],
}

test.each(Object.entries(ports))('%s may have the ports %o and no others', async (type, own) => {
  const candidates = new Set([...Object.values(ports).flat(), 22, 80, 5432, 6379, 8080, 10_250])
  for (const port of candidates) {
    const config = { ...smallest[type], endpoint: `https://sink.example.com:${port}` }
    const { status, error } = await calls.create({ type, config, enabled: false })
    if (own.includes(port)) {
      expect([port, status]).toEqual([port, 201])
      continue
    }
    expect([port, status, error.code, error.param]).toEqual([
      port,
      422,
      'invalid_export_config',
      'body.config.endpoint',
    ])
    expect(error.message).toContain(
      `is not allowed: The port is not one of ${own.join(', ')}; the operator can allow another one in EXPORT_PRIVATE_TARGETS`,
    )
  }
})

test('the refusal of the older Azure interface says what to use instead', async () => {
  const { error } = await calls.create({ type: 'azure_monitor', config: { workspace_id: 'w' } })
  expect(error.message).toMatch(/Data Collector API.*14 September 2026.*data collection rule/)
})

test.each([
  [{ config: {} }, 'missing_field', 'body.type'],
  [{ type: 'splunk_hec' }, 'missing_field', 'body.config'],
  [{ type: 'kafka', config: {} }, 'invalid_parameter', 'body.type'],
  [{ ...splunk, label: '' }, 'invalid_parameter', 'body.label'],
  [{ ...splunk, label: 'x'.repeat(81) }, 'invalid_parameter', 'body.label'],
  [{ ...splunk, enabled: 'yes' }, 'invalid_parameter', 'body.enabled'],
  [{ ...splunk, colour: 'red' }, 'unknown_field', 'body.colour'],
])('422: a sink %o is %s at %s', async (body, code, param) => {
  const { status, error } = await calls.create(body)
  expect([status, error.code, error.param]).toEqual([422, code, param])
})

test('a change merges the configuration; null removes, and an absent secret or the mask stays', async () => {
  const { id } = (await calls.create({ ...splunk, label: 'Old' })).export
  clock.pass(60_000)
  const { export: edited } = await calls.edit(id, {
    type: 'splunk_hec',
    label: 'New',
    config: { index: 'main', token: '********', ack: true },
  })
  expect(edited).toMatchObject({
    label: 'New',
    config: { ...splunk.config, token: '********', ...splunkDefaults, index: 'main', ack: true },
    created_at: '2026-06-01T12:00:00Z',
    updated_at: '2026-06-01T12:01:00Z',
  })
  const removed = await calls.edit(id, { config: { index: null, ack: null } })
  expect(removed.export.config).toEqual({ ...splunk.config, token: '********', ...splunkDefaults })
  const refused = await calls.edit(id, { config: { token: null } })
  expect([refused.status, refused.error.code, refused.error.param]).toEqual([
    422,
    'missing_field',
    'body.config.token',
  ])
})

test('a user name and a password can take the place of a key, and an index that of the dataset', async () => {
  const config = { endpoint, api_key: token }
  const { id } = (await calls.create({ type: 'elastic', config })).export
  const both = await calls.edit(id, { config: { username: 'me', password: 'a-password' } })
  expect([both.status, both.error.param]).toEqual([422, 'body.config.api_key'])
  const change = { api_key: null, username: 'me', password: 'a-password', index: 'audit' }
  const { export: edited } = await calls.edit(id, { config: change })
  expect(edited.config).toEqual({
    endpoint,
    username: 'me',
    password: '********',
    index: 'audit',
    namespace: 'default',
  })
})

test.each([
  [{}, 'invalid_parameter', 'body'],
  [{ type: 'webhook' }, 'type_immutable', 'body.type'],
  [{ type: 'webhook', config: { endpoint } }, 'type_immutable', 'body.type'],
  [{ config: { tokn: 'x' } }, 'unknown_field', 'body.config.tokn'],
  [
    { config: { endpoint: 'http://a.example.com' } },
    'invalid_export_config',
    'body.config.endpoint',
  ],
])('422: a change %o is %s at %s, and changes nothing', async (body, code, param) => {
  const { export: before } = await calls.create(splunk)
  const { status, error } = await calls.edit(before.id, body)
  expect([status, error.code, error.param]).toEqual([422, code, param])
  expect((await calls.read(before.id)).export).toEqual(before)
})

test('a change of nothing leaves no event and keeps the time', async () => {
  const { export: before } = await calls.create(splunk)
  clock.pass(60_000)
  const same = { type: 'splunk_hec', enabled: true, config: { token, ack: false } }
  expect((await calls.edit(before.id, same)).export).toEqual(before)
  expect(await readEvents()).toHaveLength(1)
})

test('a sink that is enabled again or configured otherwise is tried at once', async () => {
  const { id } = (await calls.create(splunk)).export
  const fail = () =>
    sql`update export_cursor set attempt = 7, next_at = now() + interval '1 hour', state = 'error'`.execute(
      api.db,
    )
  const waits = async () => {
    const { rows } = await sql<{ attempt: number; waits: boolean }>`
      select attempt, next_at > now() as waits from export_cursor`.execute(api.db)
    return rows[0]
  }
  const atOnce = { attempt: 0, waits: false }
  const later = { attempt: 7, waits: true }
  const expected: [object, object, string][] = [
    [{ label: 'x' }, later, 'error'],
    [{ enabled: false }, later, 'disabled'],
    [{ enabled: true }, atOnce, 'error'],
    [{ config: { token: 'another-token' } }, atOnce, 'error'],
  ]
  for (const [edit, cursor, state] of expected) {
    await fail()
    expect((await calls.edit(id, edit)).export.state).toBe(state)
    expect(await waits()).toEqual(cursor)
  }
})

test('404: after it was deleted, and its cursors and dead letters are gone too', async () => {
  const { id } = (await calls.create(splunk)).export
  await sql`insert into export_dead_letter values (${id}, 1, now(), gen_random_uuid(), 'e', 1, now())`.execute(
    api.db,
  )
  const removed = await calls.remove(id)
  expect([removed.status, removed.body]).toEqual([
    200,
    { id, object: 'policy_gateway.export.deleted', deleted: true },
  ])
  for (const answer of [await calls.read(id), await calls.edit(id, { label: 'x' })]) {
    expect([answer.status, answer.error.code]).toEqual([404, 'export_not_found'])
  }
  expect((await calls.remove(id)).status).toBe(404)
  expect(await api.db.selectFrom('export_cursor').selectAll().execute()).toEqual([])
  expect(await api.db.selectFrom('export_dead_letter').selectAll().execute()).toEqual([])
})

test('every change leaves one event: who, before and after, and which secrets changed', async () => {
  const body = { name: 'Actor', permissions: ['exports.write'] }
  const actor = (await api.send(createAdminApiKey, { body })).body
  const { id } = (await calls.create(splunk, { credential: actor.value })).export
  await calls.edit(id, { label: 'New' })
  await calls.edit(id, { config: { token: 'another-canary-token' } })
  await calls.remove(id)
  const events = await readEvents()
  expect(events.map(({ header }) => [header['action'], header['secrets_changed']])).toEqual([
    ['created', undefined],
    ['updated', undefined],
    ['updated', ['token']],
    ['deleted', undefined],
  ])
  expect(events[0]).toMatchObject({ header: { actor: actor.id, object_id: id }, before: null })
  const members = 'id object type label enabled config managed_by created_at updated_at'.split(' ')
  expect(Object.keys(events[0]!.after as object)).toEqual(members)
  expect(events[1]).toMatchObject({ before: { label: 'splunk_hec' }, after: { label: 'New' } })
  expect(events[2]).toMatchObject({ after: { config: { token: '********' } } })
  expect(events[3]!.after).toBeNull()
})

test('a repeated creation makes one sink, and is answered without its secret', async () => {
  const once = { headers: { 'idempotency-key': 'k' } }
  const first = await calls.create(splunk, once)
  const again = await calls.create(splunk, once)
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true'])
  expect(again.export).toEqual(first.export)
  expect((await calls.list()).data).toHaveLength(1)
})

test('a repeated change is answered from the first, also if it would not be valid any more', async () => {
  const config = { endpoint, api_key: token, dataset: 'a' }
  const { id } = (await calls.create({ type: 'elastic', config })).export
  const once = { headers: { 'idempotency-key': 'k' } }
  const first = await calls.edit(id, { config: { dataset: 'b' } }, once)
  await calls.edit(id, { config: { dataset: null, index: 'c' } })
  const again = await calls.edit(id, { config: { dataset: 'b' } }, once)
  expect([again.status, again.export]).toEqual([200, first.export])
  expect((await calls.read(id)).export.config['index']).toBe('c')
})

test('409: of 21 creations at once, 20 are made', async () => {
  const answers = await Promise.all(Array.from({ length: 21 }, () => calls.create(splunk)))
  const refused = answers.filter(({ status }) => status !== 201)
  expect(refused.map(({ status, error }) => [status, error.code])).toEqual([[409, 'limit_reached']])
  expect((await calls.list({ limit: '100' })).data).toHaveLength(20)
  expect(await readEvents()).toHaveLength(20)
  await calls.remove(answers.find(({ status }) => status === 201)!.export.id)
  expect((await calls.create(splunk)).status).toBe(201)
})

test('a project key needs the permissions of exports', async () => {
  const none = await createProjectKey(api.house, api.organization)
  const reader = await createProjectKey(api.house, api.organization, {
    permissions: ['exports.read'],
  })
  const writer = await createProjectKey(api.house, api.organization, {
    permissions: ['exports.write'],
  })
  const made = await calls.create(splunk, { credential: writer.value })
  expect(made.status).toBe(201)
  const { id } = made.export
  const statuses = async (credential: string) => [
    (await calls.read(id, { credential })).status,
    (await calls.edit(id, { label: 'x' }, { credential })).status,
  ]
  expect(await statuses(none.value)).toEqual([403, 403])
  expect(await statuses(reader.value)).toEqual([200, 403])
  expect(await statuses(writer.value)).toEqual([403, 200])
})

test('secrets are nowhere in clear: answers, events, logs, or any table', async () => {
  const answers: unknown[] = []
  const headers = { 'idempotency-key': 'k' }
  const made = await calls.create(splunk, { headers })
  answers.push(made, await calls.create(splunk, { headers }))
  for (const type of ['datadog_logs', 'elastic', 's3', 'azure_monitor', 'otlp_logs']) {
    answers.push(await calls.create({ type, config: smallest[type] }))
  }
  answers.push(await calls.edit(made.export.id, { config: { token: `${token}-2` } }, { headers }))
  answers.push(await calls.edit(made.export.id, { config: { token: `${token}\n` } }))
  answers.push(await calls.list({ limit: '100' }), await calls.remove(made.export.id))
  expect(JSON.stringify(answers)).not.toContain(token)
  expect(logged).not.toEqual([])
  expect(logged.join('')).not.toContain(token)
  const { rows: tables } = await sql<{ name: string }>`
    select tablename as name from pg_tables where schemaname = 'public'`.execute(api.db)
  const inHex = Buffer.from(token).toString('hex')
  for (const { name } of tables) {
    const { rows } = await sql`
      select from ${sql.table(name)} as t
      where t::text like ${`%${token}%`} or t::text like ${`%${inHex}%`}`.execute(api.db)
    expect([name, rows.length]).toEqual([name, 0])
  }
})
