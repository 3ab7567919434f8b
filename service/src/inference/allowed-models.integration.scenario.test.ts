import { readFile, writeFile } from 'node:fs/promises'

import { createProjectApiKey, updateProjectApiKey } from '@gatehouse/contract/api-key'
import { readLimits } from '@gatehouse/contract/limits'
import { listModels, retrieveModel } from '@gatehouse/contract/model'
import { updateProject } from '@gatehouse/contract/project'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { startAnotherHouse } from '#testing/test-api.ts'

import { type Call, everyWay, nameOf, openEveryWay } from './enforcement/testing/every-way.ts'

// A model that is not among the allowed ones of a project or a key is exactly like one that does not exist.

const unknown = 'never-scripted'
const [allowed, forbidden, alias] = ['chat-scripted', 'claude-scripted', 'claude-newest'] as const
const ways = everyWay.filter(({ caller }) => caller !== 'anonymous')
const atForbidden = ways.filter(({ model }) => model === forbidden)

type Houses = Awaited<ReturnType<typeof prepare>>

/** The ways to models of which one has an alias, and what calls leave behind. */
async function prepare() {
  const opened = await openEveryWay()
  const { api, upstream } = opened
  const file = api.house.config.MODELS_FILE ?? ''
  const { models, ...others } = JSON.parse(await readFile(file, 'utf8')) as {
    models: { id: string }[]
  }
  const named = models.map((model) =>
    model.id === forbidden ? { ...model, aliases: [alias] } : model,
  )
  await writeFile(file, JSON.stringify({ ...others, models: named }))
  await waitUntil(() => api.house.inference.catalogue().find(alias) !== undefined)
  const params = { project_id: api.organization.projectId }
  const allow = async (allowed_models: string[] | null) => {
    const { status } = await api.send(updateProject, { params, body: { allowed_models } })
    expect(status).toBe(200)
  }
  const upstreamRequests = async () => {
    const state = await fetch(`${upstream.url}/control/state`)
    return ((await state.json()) as { requests: number }).requests
  }
  return { ...opened, params, allow, upstreamRequests }
}

/** Headers that differ between any two calls, or with the length of the model's name. */
const volatile = /^(date|content-length|request-id|x-request-id|x-ratelimit-(remaining|reset)-.*)$/

/** An answer as the caller sees it, without what differs between any two calls, and with the model's name replaced. */
async function answerTo({ send }: Houses, call: Call, model: string, headers = {}) {
  const answer = await send(call, { headers, members: { model } })
  const heads = Object.entries(answer.headers).filter(([name]) => !volatile.test(name))
  const id = String(answer.headers['x-request-id'])
  const body = answer.body.replaceAll(model, 'NAMED').replaceAll(id, 'ID')
  return { status: answer.statusCode, headers: Object.fromEntries(heads), body }
}

const isUnknown = ({ status, body }: { status: number; body: string }) =>
  status === 404 && body.includes(`There is no model 'NAMED'`)

const modes: Record<string, (houses: Houses) => Promise<unknown>> = {
  'without policies': async () => undefined,
  'with a policy that monitors': ({ putInForce }) => putInForce({ mode: 'monitoring' }, false),
  'with a policy that blocks everything': ({ putInForce }) =>
    putInForce({ mode: 'enforcing' }, false),
  'with a configuration in its shadow': ({ configure }) =>
    configure({
      rules: { denylist: ['Go.'] },
      rollout: { shadow: { enabled: true, sample_percent: 100 } },
    }),
}

test.each(Object.keys(modes))(
  'on every way a forbidden model is like one that does not exist, %s',
  { timeout: 120_000 },
  async (mode) => {
    const houses = await prepare()
    const { allow, ask, upstreamRequests } = houses
    await allow([allowed, 'responses-scripted'])
    await waitUntil(async () => isUnknown(await answerTo(houses, atForbidden[0]!, forbidden)))
    await modes[mode]?.(houses)
    const before = await upstreamRequests()
    for (const call of atForbidden) {
      const expected = await answerTo(houses, call, unknown)
      expect(isUnknown(expected), nameOf(call)).toBe(true)
      expect(await answerTo(houses, call, forbidden), nameOf(call)).toEqual(expected)
      expect(await answerTo(houses, call, alias), nameOf(call)).toEqual(expected)
    }
    expect(await upstreamRequests()).toBe(before)
    if (mode.includes('blocks')) return
    for (const call of ways.filter(({ model }) => model !== forbidden)) {
      expect(await ask(call), nameOf(call)).toBe('served')
    }
    const free = everyWay.filter(
      ({ caller, model }) => caller === 'anonymous' && model === forbidden,
    )
    for (const call of free) expect(await ask(call), nameOf(call)).toBe('served')
  },
)

test('a refused name counts in limits and leaves an event as an unknown one does', async () => {
  const houses = await prepare()
  const { allow, send, api } = houses
  await allow([allowed])
  await waitUntil(async () => isUnknown(await answerTo(houses, atForbidden[0]!, forbidden)))
  const plain = atForbidden.filter(({ shape }) => shape === 'plain')
  const left = async (call: Call, model: string) => {
    const { headers } = await send(call, { members: { model } })
    const { 'x-ratelimit-remaining-requests': requests, 'x-ratelimit-remaining-tokens': tokens } =
      headers
    return { requests: Number(requests), tokens, id: String(headers['x-request-id']) }
  }
  for (const call of plain) {
    const first = await left(call, unknown)
    const second = await left(call, forbidden)
    const third = await left(call, alias)
    expect([second, third], nameOf(call)).toMatchObject([
      { requests: first.requests - 1, tokens: first.tokens },
      { requests: first.requests - 2, tokens: first.tokens },
    ])
    const [one, ...others] = await Promise.all(
      [first, second, third].map(({ id }) => eventOf(api, id)),
    )
    expect(one).toMatchObject({ model: null })
    expect(others, nameOf(call)).toEqual([one, one])
  }
})

/** The event of a call, without what differs between any two. */
async function eventOf({ db }: Houses['api'], requestId: string) {
  const find = async () => {
    const { rows } = await sql<{ header: object; payload: object }>`
      select header, convert_from(payload, 'utf8')::jsonb as payload from event
      where header->>'request_id' = ${requestId}`.execute(db)
    return rows[0]
  }
  await waitUntil(async () => (await find()) !== undefined)
  const text = JSON.stringify(await find()).replaceAll(requestId, 'ID')
  const { header, payload } = JSON.parse(text) as Record<string, object>
  return { ...header, ...payload, id: '', created_at: '', duration_ms: 0 }
}

/** What `GET /v1/models` answers to a credential. */
async function modelsOf({ api }: Houses, credential: string): Promise<string[]> {
  const { body } = await api.send(listModels, { credential })
  return body.data.map(({ id }) => id)
}

test('keys and tokens list and retrieve what they may use, and nothing else', async () => {
  const houses = await prepare()
  const { allow, api, credentialOf } = houses
  const all = ['claude-scripted', 'gpt-scripted', 'chat-scripted', 'responses-scripted']
  for (const caller of ['key', 'token'] as const) {
    const credential = credentialOf(caller)
    const retrieve = (model_id: string) =>
      api.send(retrieveModel, { credential, params: { model_id } })
    expect(await modelsOf(houses, credential)).toEqual(all)
    expect(await retrieve(alias)).toMatchObject({ status: 200, body: { id: forbidden } })
    await allow([allowed])
    await waitUntil(async () => (await modelsOf(houses, credential)).length === 1)
    expect((await api.send(listModels, { credential })).body).toMatchObject({
      data: [{ id: allowed }],
      first_id: allowed,
      last_id: allowed,
      has_more: false,
    })
    expect((await retrieve(allowed)).status).toBe(200)
    const { error } = (await retrieve(unknown)).body
    expect(error.code).toBe('unknown_model')
    for (const name of [forbidden, alias]) {
      expect(await retrieve(name)).toMatchObject({ status: 404, body: { error } })
    }
    await allow([])
    await waitUntil(async () => (await modelsOf(houses, credential)).length === 0)
    await allow(null)
    await waitUntil(async () => (await modelsOf(houses, credential)).length === all.length)
  }
})

test("a key's list is cut with its project's, in this process and in others", async () => {
  const houses = await prepare()
  const { allow, api, params } = houses
  const made = await api.send(createProjectApiKey, {
    params,
    body: { name: 'Limited', allowed_models: [alias, 'chat-scripted'] },
  })
  const { id: key_id, value } = made.body
  const other = startAnotherHouse(api.house, { MASTER_KEYS: api.masterKeys })
  const elsewhere = async () => {
    const credential = { kind: 'project_key', text: value } as const
    return (await other.access.authentication.byKey(listModels, credential, '::1')).allowedModels
  }
  const expectModels = async (expected: string[]) => {
    await waitUntil(async () => (await modelsOf(houses, value)).join() === expected.join())
    await waitUntil(
      async () => (await elsewhere())?.toSorted().join() === expected.toSorted().join(),
    )
  }
  const allowKey = (allowed_models: string[] | null) =>
    api.send(updateProjectApiKey, { params: { ...params, key_id }, body: { allowed_models } })
  await expectModels([forbidden, 'chat-scripted'])
  await allow(['chat-scripted', 'responses-scripted'])
  await expectModels(['chat-scripted'])
  await allow(['responses-scripted'])
  await expectModels([])
  await allowKey(null)
  await expectModels(['responses-scripted'])
  await allow(['chat-scripted'])
  await allowKey(['chat-scripted', 'gpt-scripted'])
  await expectModels(['chat-scripted'])
  await allow(null)
  await expectModels(['gpt-scripted', 'chat-scripted'])
  await allowKey([])
  await expectModels([])
  const { requests_per_day: used } = await usageOf(houses, key_id)
  await allowKey(null)
  await waitUntil(async () => (await modelsOf(houses, value)).length === 4)
  // Changes of lists leave the counts as they are.
  expect((await usageOf(houses, key_id)).requests_per_day).toBeGreaterThan(used)
})

/** What a key has used of its limits. */
async function usageOf({ api }: Houses, keyId: string) {
  const body = (await api.send(readLimits)).body as unknown as {
    keys: { key_id: string; requests_per_day: { used: number } }[]
  }
  const key = body.keys.find(({ key_id }) => key_id === keyId)
  return { requests_per_day: key?.requests_per_day.used ?? 0 }
}
