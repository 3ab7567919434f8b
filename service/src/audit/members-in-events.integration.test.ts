import { type AuditEvent, listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { saveGatewayConfig, simulateGateway } from '@gatehouse/contract/policy-gateway/gateway'
import { createProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { startSession } from '#access/sessions/start-session.ts'
import { transact } from '#platform/transaction.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

// Who has acted: members by id in headers, by name and address in payloads, which can be erased.

type Api = Awaited<ReturnType<typeof createTestApi>>

async function act(api: Api, credential: string) {
  const sent = [
    await api.send(createProject, { credential, body: { name: 'New' } }),
    await api.send(saveGatewayConfig, { credential, body: { config: {} } }),
    await api.send(simulateGateway, {
      credential,
      body: { persist: true, scenario: { categories: ['hate'] } },
    }),
  ]
  expect(sent.map(({ status }) => status < 300)).toEqual([true, true, true])
}

async function eventsBy(api: Api, actor: string) {
  const { body } = await api.send(listAuditEvents, { query: { limit: '100', order: 'asc' } })
  const { data } = body as unknown as { data: AuditEvent[] }
  return data.filter((event) => event.actor === actor)
}

const email = 'jane@example.com'
const actorOf = (event: AuditEvent) => event.payload?.['actor']

test('what a member does through a session names the member in payloads only', async () => {
  const api = await createTestApi()
  const { organizationId } = api.organization
  const member = await createMemberSession(api.house, { organizationId, role: 'admin', email })
  await act(api, member.token)
  const events = await eventsBy(api, member.memberId)
  expect(events.map(({ action, event_type }) => action ?? event_type)).toEqual([
    'signed_in',
    'created',
    'created',
    'simulation',
  ])
  for (const event of events) {
    expect(event.actor_type).toBe('member')
    expect(actorOf(event)).toEqual({ name: 'Member', email })
    const { payload: _, ...header } = event
    expect(JSON.stringify(header)).not.toMatch(/jane|"Member"/)
  }
  // What can be erased is gone, and the header still says which member it was.
  const ids = events.map(({ id }) => id)
  await sql`update event set payload = null, salt = null where id = any(${ids}::uuid[])`.execute(
    api.db,
  )
  const erased = await eventsBy(api, member.memberId)
  expect(erased).toEqual(events.map((event) => ({ ...event, payload: null })))
  const { rows } = await sql<{ text: string }>`select event::text as text from event`.execute(
    api.db,
  )
  for (const { text } of rows) expect(text).not.toContain(email)
})

test('a session that an administrator key has opened acts as the key', async () => {
  const api = await createTestApi()
  const { organizationId, adminKeyId: keyId } = await withKeyId(api)
  const { house } = api
  const started = await transact(api.db, (tx) =>
    startSession(
      tx,
      {
        owner: { organizationId, keyId },
        form: 'token',
        method: 'key',
        requestId: null,
        now: new Date(),
      },
      { ...house, sessionMaxMs: house.access.sessionMaxMs },
    ),
  )
  await act(api, started!.token)
  const events = await eventsBy(api, keyId)
  expect(events).toHaveLength(4)
  for (const event of events) {
    expect([event.actor_type, actorOf(event)]).toEqual(['admin_key', undefined])
  }
})

async function withKeyId(api: Api) {
  const { organizationId } = api.organization
  const { id: adminKeyId } = await api.db
    .selectFrom('api_key')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('kind', '=', 'admin')
    .executeTakeFirstOrThrow()
  return { organizationId, adminKeyId }
}
