import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { defaultGatewayConfig, type GatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import {
  type HistoryEntry,
  listGatewayHistory,
  readGatewayConfig,
  readGatewayRollout,
  restoreGatewayRevision,
  saveGatewayConfig,
  type SavedGatewayState,
} from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { beforeEach, expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey, createTestClock } from '#testing/test-gateway.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>
type Sent = NonNullable<Parameters<Api['send']>[1]>
let api: Api
let clock: ReturnType<typeof createTestClock>
beforeEach(async () => {
  clock = createTestClock()
  api = await createTestApi({ now: clock.now })
})

const stateOf = ({ body }: { body: unknown }) => body as SavedGatewayState
const read = async () => {
  const answer = await api.send(readGatewayConfig)
  return { ...stateOf(answer), etag: answer.headers['etag'] }
}
const save = (config: object, sent: Sent = {}) =>
  api.send(saveGatewayConfig, { ...sent, body: { config } })
const listHistory = async (query: Record<string, string> = {}) =>
  (await api.send(listGatewayHistory, { query })).body as unknown as {
    data: HistoryEntry[]
    has_more: boolean
  }
const revisionsIn = (entries: readonly HistoryEntry[]) =>
  entries.map((entry) => (entry.kind === 'revision' ? entry.revision : entry.kind))

const deny = (...denylist: string[]) => ({ rules: { denylist } })

const readEvents = async () =>
  (await api.db.selectFrom('event').selectAll().orderBy('seq').execute())
    .filter(({ header }) => (header as { object?: string }).object === 'policy_gateway.config')
    .map(({ header, payload }) => ({
      header: header as Record<string, unknown>,
      ...(JSON.parse(payload?.toString() ?? '') as { before: unknown; after: unknown }),
    }))

/** All that saving can change. */
const readAll = async () => ({
  config: await api.db.selectFrom('gateway_config').selectAll().execute(),
  history: await api.db.selectFrom('gateway_history').selectAll().orderBy('seq').execute(),
  epochs: await api.db.selectFrom('policy_epoch').selectAll().orderBy('epoch').execute(),
  events: await readEvents(),
})

test('200: before the first save there are the defaults, without a time', async () => {
  expect(await read()).toEqual({
    config: defaultGatewayConfig(),
    revision: 0,
    managed_by: null,
    created_at: null,
    updated_at: null,
    etag: '"0"',
  })
})

test('200: what is saved is completed, read again, and in the history', async () => {
  const { status, headers, body } = await save({ policy_id: 'strict', ...deny('bomb') })
  const defaults = defaultGatewayConfig()
  const config: GatewayConfig = {
    ...defaults,
    policy_id: 'strict',
    name: 'strict',
    rules: { ...defaults.rules, denylist: ['bomb'] },
  }
  const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string
  const state = { config, revision: 1, managed_by: null, created_at: at, updated_at: at }
  expect([status, headers['etag'], body]).toEqual([200, '"1"', { ...state, warnings: [] }])
  expect(await read()).toEqual({ ...state, etag: '"1"' })
  expect((await listHistory()).data).toMatchObject([
    { kind: 'revision', revision: 1, config, created_at: at },
  ])
})

test('saving what is saved changes nothing, in whatever order it is sent', async () => {
  await save({ rules: { denylist: ['a'], redact: true }, name: 'N' })
  const before = await readAll()
  clock.pass(60_000)
  const again = await save({ name: ' N ', rules: { redact: true, denylist: ['a'] } })
  expect(stateOf(again).revision).toBe(1)
  expect(await readAll()).toEqual(before)
})

test('a save replaces everything: what is left out has its default again', async () => {
  await save({ ...deny('a'), owner: 'Me' })
  clock.pass(60_000)
  const { config, created_at, updated_at } = stateOf(await save({ name: 'Other' }))
  expect([config.rules.denylist, config.owner, config.name]).toEqual([[], '', 'Other'])
  expect(Date.parse(updated_at!) - Date.parse(created_at!)).toBe(60_000)
})

test.each([
  [{ config: { rules: { denylst: [] } } }, 'unknown_field', 'body.config.rules.denylst'],
  [{ config: {}, persist: true }, 'unknown_field', 'body.persist'],
  [{}, 'missing_field', 'body.config'],
  [{ config: null }, 'invalid_parameter', 'body.config'],
  [
    { config: { rules: { denylist: ['x', ''] } } },
    'invalid_parameter',
    'body.config.rules.denylist[1]',
  ],
  [
    { config: { org_controls: { user_quota: { window: 'hourly' } } } },
    'invalid_parameter',
    'body.config.org_controls.user_quota.window',
  ],
  [
    { config: { refusal_replacement: { mode: 'escalate' } } },
    'invalid_gateway_config',
    'body.config.refusal_replacement.escalation_path',
  ],
])('422: %j', async (body, code, param) => {
  const answer = await api.send(saveGatewayConfig, { body })
  expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([
    422,
    code,
    param,
  ])
  expect((await readAll()).config).toEqual([])
})

test('a category that no scorer covers is saved, and named in a warning', async () => {
  const flagged_categories = ['hate', 'violence', 'sexual', 'hate/threatening', 'violence']
  const { config, warnings } = stateOf(await save({ rules: { flagged_categories } }))
  expect(config.rules.flagged_categories).toEqual(flagged_categories)
  expect(warnings).toEqual([
    "No scorer covers the category 'violence', so it is not found in calls.",
    "No scorer covers the category 'hate/threatening', so it is not found in calls.",
  ])
})

test.each([
  ['"1"', 200],
  ['W/"1"', 200],
  ['1', 200],
  ['"7", "1"', 200],
  ['*', 200],
  ['"0"', 409],
  ['"2"', 409],
  ['"11"', 409],
  ['abc', 422],
  ['"1', 422],
  ['', 422],
])('If-Match %s: %d', async (ifMatch, status) => {
  await save(deny('a'))
  const before = await readAll()
  const answer = await save(deny('b'), { headers: { 'if-match': ifMatch } })
  expect(answer.status).toBe(status)
  if (status === 200) return
  const { code, param } = answer.body.error
  expect([code, param]).toEqual([
    status === 409 ? 'revision_conflict' : 'invalid_parameter',
    'header.If-Match',
  ])
  if (status === 409) expect(answer.headers['x-should-retry']).toBe('false')
  expect(await readAll()).toEqual(before)
})

test('of two first saves at once, one is made with If-Match "0"', async () => {
  const answers = await Promise.all(
    ['a', 'b', 'c'].map((term) => save(deny(term), { headers: { 'if-match': '"0"' } })),
  )
  expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(['200', '409', '409'])
  expect((await readAll()).history).toHaveLength(1)
})

test('many saves at once are revisions one after another', async () => {
  await Promise.all(Array.from({ length: 12 }, (_, index) => save(deny(`term ${index}`))))
  const { history, epochs, events } = await readAll()
  const inOrder = Array.from({ length: 12 }, (_, index) => index + 1)
  expect(history.map(({ revision }) => revision)).toEqual(inOrder)
  expect(epochs.map(({ gateway_revision }) => gateway_revision)).toEqual(inOrder)
  expect(events.map(({ header }) => header['revision'])).toEqual(inOrder)
})

test('a repeated save is answered from the first, with its ETag', async () => {
  const once = { headers: { 'idempotency-key': 'k' } }
  const first = await save(deny('a'), once)
  await save(deny('b'))
  const replayed = await save(deny('a'), once)
  expect([replayed.status, replayed.headers['etag'], replayed.body]).toEqual([
    200,
    '"1"',
    first.body,
  ])
  expect(replayed.headers['idempotent-replayed']).toBe('true')
  expect((await read()).config.rules.denylist).toEqual(['b'])
})

test('every change leaves one event: who, and how it was before and after', async () => {
  const everything = { name: 'Actor', permissions: ['policy_gateway.write'] }
  const actor = (await api.send(createAdminApiKey, { body: everything })).body
  const states = [null, stateOf(await save(deny('a'), { credential: actor.value }))]
  states.push(stateOf(await save({ ...deny('b'), name: 'Named' })))
  const [, first] = (await listHistory()).data
  const restored = await api.send(restoreGatewayRevision, { params: { history_id: first!.id } })
  states.push(stateOf(restored))
  const resource = (state: SavedGatewayState | null | undefined) => {
    if (!state) return null
    const { warnings: _, ...shown } = state
    return { id: 'policy-gateway', object: 'policy_gateway.config', ...shown }
  }
  const facts = { policy_id: 'policy-gateway', object: 'policy_gateway.config' }
  expect(await readEvents()).toEqual([
    {
      header: expect.objectContaining({
        ...facts,
        action: 'created',
        actor: actor.id,
        revision: 1,
        policy_name: 'policy-gateway',
        data_classification: 'internal',
      }) as object,
      before: null,
      after: resource(states[1]),
    },
    {
      header: expect.objectContaining({
        ...facts,
        action: 'updated',
        revision: 2,
        policy_name: 'Named',
      }) as object,
      before: resource(states[1]),
      after: resource(states[2]),
    },
    {
      header: expect.objectContaining({
        ...facts,
        action: 'restored',
        revision: 3,
        restored_revision: 1,
        request_id: restored.headers['x-request-id'],
      }) as object,
      before: resource(states[2]),
      after: resource(states[3]),
    },
  ])
})

test('the history keeps the last 50 revisions, in pages, the newest first', async () => {
  for (let index = 1; index <= 53; index++) await save(deny(`term ${index}`))
  const first = await listHistory({ limit: '30' })
  expect([revisionsIn(first.data), first.has_more]).toEqual([
    Array.from({ length: 30 }, (_, index) => 53 - index),
    true,
  ])
  const second = await listHistory({ limit: '30', after: first.data.at(-1)!.id })
  expect([revisionsIn(second.data), second.has_more]).toEqual([
    Array.from({ length: 20 }, (_, index) => 23 - index),
    false,
  ])
  expect(revisionsIn((await listHistory({ limit: '2', order: 'asc' })).data)).toEqual([4, 5])
})

test('an older revision is restored as a new one; the current one stays as it is', async () => {
  await save({ ...deny('a'), owner: 'Me' })
  await save(deny('b'))
  const [current, older] = (await listHistory()).data
  const restore = (id: string, headers: Record<string, string> = {}) =>
    api.send(restoreGatewayRevision, { params: { history_id: id }, headers })
  expect(stateOf(await restore(current!.id)).revision).toBe(2)
  expect((await restore(older!.id, { 'if-match': '"1"' })).status).toBe(409)
  const { status, headers, body } = await restore(older!.id, { 'if-match': '"2"' })
  expect([status, headers['etag']]).toEqual([200, '"3"'])
  expect(stateOf({ body })).toMatchObject({ revision: 3, config: { owner: 'Me', ...deny('a') } })
  expect(revisionsIn((await listHistory()).data)).toEqual([3, 2, 1])
})

test('404: an entry that the history does not have', async () => {
  const { status, body } = await api.send(restoreGatewayRevision, {
    params: { history_id: 'hist_none' },
  })
  expect([status, body.error.code]).toEqual([404, 'history_entry_not_found'])
})

test('400: a cursor that is no entry', async () => {
  const { status, body } = await api.send(listGatewayHistory, { query: { after: 'hist_none' } })
  expect([status, body.error.code]).toEqual([400, 'invalid_cursor'])
})

test('subjects are drawn anew by a new rule, and not by another rollout', async () => {
  const draws = async () => {
    const [row] = (await readAll()).config
    return [row?.revision, row?.sampling_revision, row?.sampling_key.toString('hex')] as const
  }
  const canary = (sample_percent: number) => ({
    ...deny('a'),
    rollout: { canary: { enabled: true, sample_percent } },
  })
  await save(canary(1))
  const [, , key] = await draws()
  await save(canary(5))
  expect(await draws()).toEqual([2, 1, key])
  await save({ ...canary(5), ...deny('b') })
  expect(await draws()).toEqual([3, 3, key])
  await save({ ...canary(50), ...deny('b') })
  expect(await draws()).toEqual([4, 3, key])
})

test('a project key reads, and saves only with the permission', async () => {
  const reader = await createProjectKey(api.house, api.organization)
  const read = await api.send(readGatewayConfig, { credential: reader.value })
  expect(read.status).toBe(200)
  const refused = await save(deny('a'), { credential: reader.value })
  expect([refused.status, refused.headers['www-authenticate']]).toEqual([
    403,
    'Bearer error="insufficient_scope", scope="policy_gateway.write"',
  ])
  const writer = await createProjectKey(api.house, api.organization, {
    permissions: ['policy_gateway.read', 'policy_gateway.write'],
  })
  expect((await save(deny('a'), { credential: writer.value })).status).toBe(200)
  expect((await listHistory()).data).toMatchObject([{ actor: writer.id }])
})

test('the rollout counts the processes that run the configuration', async () => {
  const rollout = async () => (await api.send(readGatewayRollout)).body as unknown
  await waitUntil(() => Number.isFinite(api.house.policies.inForce.confirmedAtMs()))
  await expect.poll(rollout).toMatchObject({
    revision: 0,
    policy_epoch: 0,
    is_applied: true,
    processes: { live: 1, applied: 1 },
    revisions: [{ revision: 0, processes: 1 }],
  })
  await save(deny('a'))
  await expect.poll(rollout).toMatchObject({
    revision: 1,
    policy_epoch: 1,
    is_applied: true,
    processes: { live: 1, applied: 1, pending: 0, failed: 0 },
    revisions: [{ revision: 1, processes: 1 }],
  })
})
