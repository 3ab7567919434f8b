import type { ServerResponse } from 'node:http'

import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import { updateProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { sweepHolds } from '#credits/holds/sweep-store.ts'
import { systemClock } from '#platform/clock.ts'
import { createIssuerDouble } from '#testing/issuer-double.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { completion, type PlainCalls, preparePlainCalls, sendPlain } from '#testing/plain-calls.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

// What the event of a call says of its caller: what the caller is, the name of the project, and the user.

async function prepare() {
  const issuer = await createIssuerDouble(systemClock)
  onTestFinished(() => issuer[Symbol.asyncDispose]())
  const calls = await preparePlainCalls({
    environment: (organizationId) => ({
      EGRESS_PRIVATE_TARGETS: issuer.host,
      JWT_ISSUERS: JSON.stringify([
        {
          issuer: issuer.issuer,
          jwks_url: issuer.jwksUrl,
          audience: issuer.audience,
          organizations: [organizationId],
          permissions: { use: ['model.invoke'] },
        },
      ]),
    }),
  })
  calls.upstream.behave = (response) => sendPlain(response, completion('Hello.'))
  const token = await issuer.sign({
    organization_id: calls.organization.organizationId,
    scope: 'use',
  })
  return { calls, issuer, token }
}

/** A member of the project, with an own key there. */
async function createOwnKey({ house, organization }: PlainCalls) {
  const { organizationId, projectId } = organization
  const projectRoles = { [projectId]: 'project_member' as const }
  const wanted = { organizationId, role: 'developer', projectRoles } as const
  const { memberId } = await createMemberSession(house, wanted)
  const { value } = await createProjectKey(house, organization, {}, { memberId, defaults: null })
  return { memberId, value }
}

const content = { messages: [{ role: 'user', content: 'Hello' }] }
const ask = (calls: PlainCalls, credential: string, model = 'm') =>
  calls.send(createChatCompletion, { credential, body: { model, ...content } })

async function callersOf(calls: PlainCalls) {
  const { rows } = await sql<{ caller: object }>`
    select header - array(
      select name from jsonb_object_keys(header) as name
      where name not in ('outcome', 'actor', 'actor_type', 'project_label', 'user_id')
    ) as caller from event where kind = 'enforcement' order by seq`.execute(calls.db)
  return rows.map(({ caller }) => caller)
}

test('a key and a token, with the name of the project at that time, also of refused calls', async () => {
  const { calls, issuer, token } = await prepare()
  const { projectId } = calls.organization
  await ask(calls, calls.credential)
  await ask(calls, token)
  await ask(calls, calls.credential, 'none')
  const body = { name: 'Renamed' }
  await calls.send(updateProject, { params: { project_id: projectId }, body })
  const ofKey = {
    actor: expect.stringMatching(/^key_/) as string,
    actor_type: 'project_key',
    project_label: 'Default',
  }
  expect(await callersOf(calls)).toEqual([
    { ...ofKey, outcome: 'completed' },
    {
      outcome: 'completed',
      actor: `${issuer.issuer}|user-1`,
      actor_type: 'token',
      project_label: 'Default',
      user_id: 'user-1',
    },
    { ...ofKey, outcome: 'refused' },
  ])
  const isRenamed = async (credential: string) => {
    await ask(calls, credential)
    return (await callersOf(calls)).at(-1)
  }
  const patience = { timeout: 10_000 }
  const renamed = { project_label: 'Renamed' }
  await expect.poll(() => isRenamed(calls.credential), patience).toMatchObject(renamed)
  await expect.poll(() => isRenamed(token), patience).toMatchObject(renamed)
})

test('a call with the own key of a member names the member, also if it is refused or its process dies', async () => {
  const { calls } = await prepare()
  const { memberId, value } = await createOwnKey(calls)
  await ask(calls, value)
  await ask(calls, value, 'none')
  const unanswered: ServerResponse[] = []
  calls.upstream.behave = (response) => unanswered.push(response)
  const waiting = ask(calls, value)
  await expect.poll(() => unanswered).toHaveLength(1)
  await sql`update credit_hold set expires_at = now() - interval '1 second'`.execute(calls.db)
  expect(await sweepHolds(calls.db)).toBe(1)
  const ofMember = { actor_type: 'project_key', project_label: 'Default', user_id: memberId }
  const actor = expect.stringMatching(/^key_/) as string
  expect(await callersOf(calls)).toEqual(
    ['completed', 'refused', 'unknown'].map((outcome) => ({ ...ofMember, actor, outcome })),
  )
  sendPlain(unanswered[0]!, completion('Hello.'))
  await waiting
})

test('a call whose process has died: its hold knows the caller, and the ledger does not', async () => {
  const { calls, token } = await prepare()
  const unanswered: ServerResponse[] = []
  calls.upstream.behave = (response) => unanswered.push(response)
  const waiting = [ask(calls, calls.credential), ask(calls, token)]
  const holds = () => sql<{ id: string }>`select id from credit_hold`.execute(calls.db)
  await expect.poll(async () => (await holds()).rows).toHaveLength(2)
  // As an earlier release has written it.
  await sql`
    update credit_hold set meta = meta - 'caller' where meta->'caller'->>'type' = 'token'`.execute(
    calls.db,
  )
  await sql`update credit_hold set expires_at = now() - interval '1 second'`.execute(calls.db)
  expect(await sweepHolds(calls.db)).toBe(2)
  const callers = (await callersOf(calls)).toSorted((one, other) =>
    JSON.stringify(one).length > JSON.stringify(other).length ? -1 : 1,
  )
  expect(callers).toEqual([
    {
      outcome: 'unknown',
      actor: expect.stringMatching(/^key_/) as string,
      actor_type: 'project_key',
      project_label: 'Default',
    },
    { outcome: 'unknown', actor: expect.stringMatching(/\|user-1$/) as string },
  ])
  const { rows } = await sql<{ meta: object }>`
    select meta from ledger_entry where kind = 'void_unknown'`.execute(calls.db)
  for (const { meta } of rows) expect(meta).not.toHaveProperty('caller')
  const { rows: payloads } = await sql<{ text: string }>`
    select convert_from(payload, 'UTF8') as text from event where kind = 'enforcement'`.execute(
    calls.db,
  )
  for (const { text } of payloads) expect(text).not.toContain('caller')
  await expect.poll(() => unanswered).toHaveLength(2)
  for (const response of unanswered) sendPlain(response, completion('Hello.'))
  await Promise.all(waiting)
})
