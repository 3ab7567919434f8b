import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { updateMember } from '@gatehouse/contract/members/member'
import { createGuardrail, updateGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import { createProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createTestApi } from '#testing/test-api.ts'

import {
  type ManagedChange,
  managedChanges,
  memberChange,
  type Sent,
  target,
} from './testing/managed-changes.ts'

type Members = Record<string, unknown>
type Api = Awaited<ReturnType<typeof createTestApi>>
let api: Api
beforeEach(async () => {
  api = await createTestApi()
})

/** An organization of its own: its calls in the name of a set. */
async function useOrganization() {
  const { organizationId, adminKey: credential } = await createOrganization('Example', api.house)
  const send = (set: string | null, endpoint: Endpoint, sent: Sent = {}) =>
    api.send(endpoint, {
      credential,
      ...sent,
      headers: { ...(set !== null && { 'x-gatehouse-set': set }), ...sent.headers },
    })
  return { organizationId, send }
}

/** The object of a change, made in the name of a set. */
async function make({ make, table }: ManagedChange, set: string | null) {
  const { organizationId, send } = await useOrganization()
  const { id, sent } = await make(async (endpoint, given) => {
    const { status, body } = await send(set, endpoint, given)
    if (status >= 300) throw new Error(`${endpoint.id}: ${JSON.stringify(body)}`)
    return body
  })
  return {
    change: (as: string | null, endpoint: Endpoint, takesOver = false) =>
      send(as, endpoint, {
        ...sent,
        ...(takesOver && { query: { ...sent.query, take_over: 'true' } }),
      }),
    /** Undefined if it was deleted. */
    async readSet() {
      const isIt = table === 'gateway_config' ? sql`true` : sql`id = ${id}`
      const { rows } = await sql<{ managed_by: string | null }>`
        select managed_by from ${sql.table(table)}
        where organization_id = ${organizationId} and ${isIt}`.execute(api.db)
      return rows[0]?.managed_by
    },
    /** In the order in which they were written, which the log keeps. */
    async readEvents() {
      const { rows } = await sql<{ header: Members; payload: Buffer }>`
        select header, payload from event
        where organization_id = ${organizationId} order by seq`.execute(api.db)
      return rows.map(({ header, payload }) => ({
        ...header,
        payload: JSON.parse(payload.toString()) as Members,
      }))
    },
  }
}

const named = managedChanges.map((change) => ({ ...change, id: change.endpoint.id }))
const changes = named.filter(({ endpoint }) => endpoint.managed === 'change')
const exempt = named.filter(({ endpoint }) => endpoint.managed === 'exempt')

/** Tried beside the endpoints themselves, because they need two persons. */
const triedElsewhere = ['approvePolicy', 'createGatewayProposal']

test('every endpoint that changes such an object is tried here', () => {
  const all: readonly Endpoint[] = endpoints
  const declared = all.filter(({ managed }) => managed === 'change' || managed === 'exempt')
  const tried = [...named.map(({ id }) => id), ...triedElsewhere]
  expect(tried.toSorted()).toEqual(declared.map(({ id }) => id).toSorted())
})

const refusal = (message: string) => ({
  status: 409,
  headers: expect.objectContaining({ 'x-should-retry': 'false' }) as unknown,
  body: {
    error: expect.objectContaining({
      code: 'managed_elsewhere',
      param: 'header.X-Gatehouse-Set',
      message: expect.stringContaining(message) as unknown,
    }) as unknown,
  },
})

test('409 for every change in the name of no set or of another one', async () => {
  for (const change of changes) {
    const object = await make(change, 'platform')
    const events = await object.readEvents()
    for (const other of [null, 'shop']) {
      expect(await object.change(other, change.endpoint), change.id).toEqual(
        refusal("is managed by the set 'platform'; change it there"),
      )
    }
    expect(await object.readSet()).toBe('platform')
    expect(await object.readEvents()).toEqual(events)
    expect((await object.change('platform', change.endpoint)).status, change.id).toBe(200)
    expect([undefined, 'platform']).toContain(await object.readSet())
  }
})

test('409 for every change in the name of a set, where none manages the object', async () => {
  for (const change of changes) {
    const object = await make(change, null)
    const answer = await object.change('shop', change.endpoint)
    expect(answer, change.id).toEqual(refusal('No set manages the '))
    expect(await object.readSet()).toBeNull()
    expect((await object.change(null, change.endpoint)).status, change.id).toBe(200)
    expect([undefined, null]).toContain(await object.readSet())
  }
})

test.each([
  { from: 'platform', to: 'shop' },
  { from: 'platform', to: null },
  { from: null, to: 'shop' },
])('every change takes over from $from to $to, with an event before its own', async (sets) => {
  const { from, to } = sets
  for (const change of changes) {
    const object = await make(change, from)
    const before = await object.readEvents()
    expect((await object.change(to, change.endpoint, true)).status, change.id).toBe(200)
    expect([undefined, to]).toContain(await object.readSet())
    const [taken, ...others] = (await object.readEvents()).slice(before.length)
    expect(taken, change.id).toMatchObject({
      action: 'taken_over',
      managed_by: to,
      managed_by_before: from,
      payload: { before: { managed_by: from }, after: { managed_by: to } },
    })
    for (const { payload, ...header } of others as Members[]) {
      expect(header['action']).not.toBe('taken_over')
      expect(payload, change.id).toMatchObject({ before: { managed_by: to } })
    }
  }
})

test('take_over in the name of the same set is a change like any other', async () => {
  for (const change of changes) {
    const object = await make(change, 'platform')
    expect((await object.change('platform', change.endpoint, true)).status).toBe(200)
    const actions = (await object.readEvents()).map((event: Members) => event['action'])
    expect(actions, change.id).not.toContain('taken_over')
  }
})

test.each([
  [{ status: 'suspended' }, 200],
  [{ status: 'suspended', role: 'admin' }, 409],
  [{ status: 'suspended', name: 'Ada' }, 409],
  [{ status: 'active' }, 409],
  [{ role: 'viewer' }, 409],
])('a member of another set can be suspended and nothing else: %j is %i', async (body, status) => {
  const change = memberChange(updateMember, body)
  for (const caller of [null, 'shop']) {
    const object = await make(change, 'platform')
    expect((await object.change(caller, change.endpoint)).status).toBe(status)
    expect(await object.readSet()).toBe('platform')
  }
})

test('what is exempt is never refused, and the object keeps its set', async () => {
  for (const [set, caller] of [
    ['platform', null],
    ['platform', 'shop'],
    [null, 'shop'],
  ] as const) {
    for (const change of exempt) {
      const object = await make(change, set)
      expect((await object.change(caller, change.endpoint, true)).status, change.id).toBe(200)
      expect(await object.readSet(), change.id).toBe(set)
    }
  }
})

const { url, secret } = target
type Shown = { guardrail: { id: string; managed_by: string | null } }

test('what was taken over is changed by its new set only', async () => {
  const { send } = await useOrganization()
  const made = await send('platform', createGuardrail, { body: { name: 'House', url, secret } })
  const { id: guardrail_id } = (made.body as unknown as Shown).guardrail
  const rename = (set: string | null, name: string, query?: Record<string, string>) =>
    send(set, updateGuardrail, {
      params: { guardrail_id },
      body: { name },
      ...(query && { query }),
    })
  // A change that changes nothing takes over, too.
  const taken = await rename('shop', 'House', { take_over: 'true' })
  expect((taken.body as unknown as Shown).guardrail.managed_by).toBe('shop')
  expect((await rename('platform', 'Home')).status).toBe(409)
  expect((await rename('shop', 'Home')).status).toBe(200)
})

test('a change that is refused for another reason takes nothing over', async () => {
  const { send } = await useOrganization()
  const made = await send('platform', createGuardrail, { body: { name: 'House', url, secret } })
  const { id: guardrail_id } = (made.body as unknown as Shown).guardrail
  await send(null, createGuardrail, { body: { name: 'Taken', url, secret } })
  const sent = { params: { guardrail_id }, body: { name: 'Taken' }, query: { take_over: 'true' } }
  expect(await send('shop', updateGuardrail, sent)).toMatchObject({
    status: 409,
    body: { error: { code: 'guardrail_name_taken' } },
  })
  expect(
    (await send('platform', updateGuardrail, { ...sent, body: { name: 'Home' } })).status,
  ).toBe(200)
})

test('an Idempotency-Key belongs to the set of its request', async () => {
  const { send } = await useOrganization()
  const create = (set: string | null, key: string) =>
    send(set, createProject, { body: { name: 'House' }, headers: { 'idempotency-key': key } })
  const first = await create('platform', 'k1')
  expect(await create('platform', 'k1')).toMatchObject({
    headers: { 'idempotent-replayed': 'true' },
    body: first.body,
  })
  for (const other of ['shop', null]) {
    expect(await create(other, 'k1')).toMatchObject({
      status: 409,
      body: { error: { code: 'idempotency_key_reused' } },
    })
  }
  await create(null, 'k2')
  expect(await create('platform', 'k2')).toMatchObject({ status: 409 })
})

test.each(['', 'a b', 'a,b', 'é', 'a'.repeat(81)])('422: the set %j', async (set) => {
  const { send } = await useOrganization()
  expect(await send(set, createProject, { body: { name: 'House' } })).toMatchObject({
    status: 422,
    body: { error: { code: 'invalid_parameter', param: 'header.X-Gatehouse-Set' } },
  })
})
