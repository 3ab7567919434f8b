import { actorTypes } from '@gatehouse/contract/exports/audit-event'
import { expect, test } from 'vitest'

import { type Acting, actorTypeOf } from './actor.ts'
import {
  buildRevisionEvent,
  buildSimulationEvent,
  callerOf,
  gatehouse,
  operator,
  stripeActor,
} from './event.ts'

const jane = { id: 'mem_1', email: 'jane@example.com', name: 'Jane', role: 'admin' }

test.each([
  ['admin_key', null, 'admin_key'],
  ['project_key', null, 'project_key'],
  ['jwt', null, 'token'],
  ['anonymous', null, 'anonymous'],
  ['session', jane, 'member'],
  // An administrator key has opened it.
  ['session', null, 'admin_key'],
] as const)('what an actor is: %s %j', (kind, member, type) => {
  expect(actorTypeOf({ kind, member })).toBe(type)
  expect(actorTypes).toContain(type)
})

test('every actor of the service has a type of the contract', () => {
  const types = [operator, gatehouse, stripeActor('req_1')].map(({ type }) => type)
  expect(types).toEqual(['operator', 'gatehouse', 'stripe'])
  for (const type of types) expect(actorTypes).toContain(type)
})

const byJane: Acting = { kind: 'session', credentialId: jane.id, member: jane }
const by = callerOf({ principal: byJane, requestId: 'req_1' })
const person = { name: 'Jane', email: 'jane@example.com' }
const resource = (text: string) => ({ id: 'x', object: 'thing', text })

test.each([
  ['small', resource('a'), resource('b')],
  ['changed members only', { ...resource('a'), rest: 'x'.repeat(40_000) }, resource('b')],
  ['hashes only', resource('a'), resource('b'.repeat(80_000))],
])('a member is in the header by id, and by name in the payload: %s', (_, before, after) => {
  const change = { organizationId: 'org_1', by, action: 'updated', before, after } as const
  const event = buildRevisionEvent(change, new Date())
  expect(event.header).toMatchObject({
    actor: 'mem_1',
    actor_type: 'member',
    request_id: 'req_1',
  })
  expect(JSON.stringify(event.header)).not.toMatch(/jane/i)
  expect(JSON.parse(event.payload.toString())).toMatchObject({ actor: person })
  expect(event.payload.length).toBeLessThanOrEqual(65_536)
})

test('a simulation of a member, and the change of one who has no name', () => {
  const report = { organizationId: 'org_1', historyId: 'hist_1', facts: {} }
  const simulated = buildSimulationEvent({ ...report, by }, new Date())
  expect(JSON.parse(simulated.payload.toString())).toEqual({ actor: person })
  expect(JSON.stringify(simulated.header)).not.toMatch(/jane/i)
  const nameless = buildSimulationEvent({ ...report, by: operator }, new Date())
  expect(nameless.payload.toString()).toBe('{}')
})
