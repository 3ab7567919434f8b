import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { guardrailCalls } from '#gateway-config/guardrails/testing/guardrail-calls.ts'
import { everyWay, nameOf, openEveryWay } from '#inference/enforcement/testing/every-way.ts'
import { eventsOf } from '#inference/enforcement/testing/open-redacting.ts'
import {
  blockedWord,
  createGuardrailDouble,
  guardrailSecret,
} from '#moderation/testing/guardrail-double.ts'
import { createProject, createProjectKey } from '#testing/test-gateway.ts'

// Calls under guardrails that their organization has created.

const ways = everyWay.filter(
  ({ caller, model, shape, endpoint }) =>
    caller === 'key' &&
    model === 'chat-scripted' &&
    shape !== 'folded' &&
    endpoint.id !== 'countTokens',
)
const [usualWay] = ways
const forbidden = { asked: `This is ${blockedWord}.` }

async function open() {
  const double = await createGuardrailDouble()
  onTestFinished(() => double[Symbol.asyncDispose]())
  const every = await openEveryWay({ EXPORT_PRIVATE_TARGETS: new URL(double.url).host })
  const calls = guardrailCalls(every.api)
  const { organizationId } = every.api.organization
  const epoch = () => every.api.house.policies.inForce.pin(organizationId).snapshot.epoch
  /** Makes a change, and waits until calls meet it. */
  async function change<T>(make: () => Promise<T>): Promise<T> {
    const before = epoch()
    const made = await make()
    await waitUntil(() => epoch() === before + 1)
    return made
  }
  const create = (body: object = {}) =>
    change(async () => {
      const given = { url: double.url, secret: guardrailSecret, mode: 'enforcing', ...body }
      return (await calls.create(given)).guardrail.id
    })
  return { ...every, double, calls, change, create, epoch }
}

test('a guardrail that is created blocks calls, until it is deleted', async () => {
  const every = await open()
  const id = await every.create()
  for (const way of ways) {
    expect(await every.ask(way), nameOf(way)).toBe('served')
    expect(await every.ask(way, forbidden), nameOf(way)).toBe('blocked')
  }
  expect(new Set(every.double.signatures)).toEqual(new Set(['right']))
  expect(every.double.questions[0]).not.toHaveProperty('is_test')
  const blocked = (await eventsOf(every)).filter(({ outcome }) => outcome === 'blocked')
  expect(blocked).toHaveLength(ways.length)
  for (const event of blocked) {
    expect(event).toMatchObject({ policy_name: 'House', reason_code: 'GUARDRAIL_BLOCKED' })
    expect(event['guardrails']).toMatchObject([
      { guardrail_id: id, name: 'House', mode: 'enforcing', action: 'block', code: 'word' },
    ])
  }
  await every.change(() => every.calls.edit(id, { mode: 'monitoring' }))
  for (const way of ways) expect(await every.ask(way, forbidden)).toBe('served')
  await every.change(() => every.calls.remove(id))
  const before = every.double.questions.length
  for (const way of ways) expect(await every.ask(way, forbidden)).toBe('served')
  expect(every.double.questions).toHaveLength(before)
})

test('a guardrail of some projects does not meet the calls of others', async () => {
  const every = await open()
  const { organizationId } = every.api.organization
  const projectId = await createProject(every.api.house, organizationId)
  await every.create({ project_ids: [projectId] })
  expect(await every.ask(usualWay!, forbidden)).toBe('served')
  expect(every.double.questions).toEqual([])
  const { headers } = await createProjectKey(every.api.house, { organizationId, projectId })
  expect(await every.ask(usualWay!, { ...forbidden, headers })).toBe('blocked')
  expect(every.double.questions[0]?.project_id).toBe(projectId)
})

test('an address that must not be called is not, however it was saved, and the call is refused', async () => {
  const every = await open()
  const other = await createGuardrailDouble()
  onTestFinished(() => other[Symbol.asyncDispose]())
  const id = await every.create({ on_error: 'allow' })
  await sql`update guardrail set url = ${other.url} where id = ${id}`.execute(every.api.db)
  await every.change(() => every.calls.edit(id, { deadline_ms: 1000 }))
  const answer = await every.send(usualWay!)
  expect([other.questions, every.double.questions]).toEqual([[], []])
  expect([answer.statusCode, answer.body]).toEqual([
    503,
    expect.stringContaining('policy_evaluation_unavailable'),
  ])
  expect(answer.body).not.toContain('127.0.0.1')
  const [event] = await eventsOf(every)
  expect(event?.['guardrails']).toMatchObject([
    { guardrail_id: id, action: 'failed', code: 'misconfigured' },
  ])
})

test('calls are 503 while no master key opens the secret of an enforcing guardrail', async () => {
  const every = await open()
  const id = await every.create({ on_error: 'allow' })
  await sql`update guardrail set secret = decode('00', 'hex') where id = ${id}`.execute(
    every.api.db,
  )
  await every.change(() => every.calls.edit(id, { deadline_ms: 1000 }))
  const { statusCode, body } = await every.send(usualWay!)
  expect([statusCode, every.double.questions]).toEqual([503, []])
  expect(body).toContain('policy_evaluation_unavailable')
  await every.change(() => every.calls.edit(id, { secret: guardrailSecret }))
  expect(await every.ask(usualWay!)).toBe('served')
})
