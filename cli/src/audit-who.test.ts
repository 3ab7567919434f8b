import { expect, test } from 'vitest'

import { changeFrom } from './audit/who/changes.ts'
import { describeHistory } from './audit/who/describe-changes.ts'

const event = (members: object) => ({
  id: 'event_1',
  created_at: '2026-01-01T00:00:00.123Z',
  actor: 'key_1',
  action: 'updated',
  revision: 2,
  policy_name: 'Manners',
  payload: { before: {}, after: {} },
  ...members,
})

const linesOf = (...events: object[]) => {
  const changes = events.map(changeFrom).filter((change) => change !== undefined)
  const history = { policyId: 'pol_1', changes, keyNames: new Map(), next: undefined }
  return describeHistory(history, 80).trimEnd().split('\n').slice(2)
}

test('what differs is shown, without what changes every time', () => {
  const draft = { rule: 'one', project_ids: ['a'], base_version: 1 }
  const before = { id: 'pol_1', revision: 1, updated_at: 1, state: 'draft', draft, published: null }
  const after = {
    ...before,
    revision: 2,
    updated_at: 2,
    published: { rule: 'one' },
    draft: { rule: 'one', project_ids: ['a', 'b'], base_version: 2 },
  }
  expect(linesOf(event({ payload: { before, after } }))).toEqual([
    '2026-01-01 00:00:00 UTC  updated (revision 2)',
    '  by key_1',
    '  draft.project_ids: ["a"] -> ["a","b"]',
  ])
})

test('an erased payload, a deletion and a restored version are told apart', () => {
  expect(linesOf(event({ payload: null }))).toContain('  what has changed was erased')
  const deleted = event({ action: 'deleted', payload: { before: { state: 'draft' }, after: null } })
  expect(linesOf(deleted)).toEqual(['2026-01-01 00:00:00 UTC  deleted (revision 2)', '  by key_1'])
  expect(linesOf(event({ restored_version: 1 }))[0]).toContain('restored version 1 into the draft')
})

test('an actor is shown with its type, and a member with name and address', () => {
  const actorOf = (members: object) => linesOf(event(members))[1]
  expect(actorOf({ actor_type: 'admin_key' })).toBe('  by key_1 (admin_key)')
  expect(actorOf({ actor: 'operator', actor_type: 'operator' })).toBe('  by operator')
  const actor = { name: 'Jane', email: 'jane@example.com' }
  const member = { actor: 'mem_1', actor_type: 'member' }
  expect(actorOf({ ...member, payload: { before: {}, after: {}, actor } })).toBe(
    '  by mem_1 (member) "Jane" <jane@example.com>',
  )
  // Erased, or of a release that writes it in another way.
  expect(actorOf({ ...member, payload: null })).toBe('  by mem_1 (member)')
  expect(actorOf({ ...member, payload: { actor: 'Jane' } })).toBe('  by mem_1 (member)')
})

test('many changes are counted, long ones cut, and no text gives orders to the terminal', () => {
  const after = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [`m${index}`, 'x\u001b'.repeat(100)]),
  )
  const lines = linesOf(event({ payload: { before: null, after } }))
  expect(lines.at(-1)).toBe('  and 10 more: --json shows them')
  for (const line of lines) expect(Array.from(line).length).toBeLessThanOrEqual(80)
  expect(lines.join('')).not.toContain('\u001b')
})

test('what is no event of a change is left out', () => {
  expect([changeFrom(null), changeFrom({ id: 'x' })]).toEqual([undefined, undefined])
})
