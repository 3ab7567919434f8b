import { expect, test } from 'vitest'

import { createVerdictCache, verdictKeys } from './verdict-cache.ts'

const state = { judgeId: 'generic:m', promptVersion: 'rules-1', calibrationVersion: 'identity' }
const content = {
  organizationId: 'org_1',
  direction: 'request' as const,
  context: 'before',
  text: 'now',
}
const rule = { policyId: 'pol_1', version: 3, text: 'No spam.' }
const hour = 60 * 60 * 1000

test('a score is kept for 24 hours', () => {
  let nowMs = 0
  const cache = createVerdictCache(() => new Date(nowMs))
  cache.set('org_1', 'key', 4200)
  nowMs = 24 * hour - 1
  expect(cache.get('org_1', 'key')).toBe(4200)
  nowMs = 24 * hour
  expect(cache.get('org_1', 'key')).toBeUndefined()
})

test('it has at most as many entries as it may have, and drops what was not asked for', () => {
  const cache = createVerdictCache(() => new Date(), {
    entriesMax: 2,
    shareMax: 1,
    ageMaxMs: hour,
  })
  cache.set('org_1', 'a', 1)
  cache.set('org_1', 'b', 2)
  cache.get('org_1', 'a')
  cache.set('org_1', 'c', 3)
  const found = ['a', 'b', 'c'].map((key) => cache.get('org_1', key))
  expect(found).toEqual([1, undefined, 3])
})

test('an organization with very many verdicts drives out its own, and none of the others', () => {
  const cache = createVerdictCache(() => new Date(), {
    entriesMax: 100,
    shareMax: 10,
    ageMaxMs: hour,
  })
  cache.set('org_1', 'key', 1)
  for (let i = 0; i < 1000; i++) cache.set('org_2', String(i), 2)
  expect([cache.get('org_1', 'key'), cache.get('org_2', 'key')]).toEqual([1, undefined])
})

test('a verdict has another key whenever anything is different that it depends on', () => {
  const keys = [
    verdictKeys(state, content)(rule),
    verdictKeys({ ...state, judgeId: 'generic:n' }, content)(rule),
    verdictKeys(state, { ...content, organizationId: 'org_2' })(rule),
    verdictKeys({ ...state, promptVersion: 'rules-2' }, content)(rule),
    verdictKeys({ ...state, calibrationVersion: '2026-11' }, content)(rule),
    verdictKeys(state, { ...content, direction: 'response' })(rule),
    verdictKeys(state, { ...content, context: '' })(rule),
    verdictKeys(state, { ...content, text: 'now ' })(rule),
    verdictKeys(state, { ...content, context: 'beforenow', text: '' })(rule),
    verdictKeys(state, content)({ ...rule, policyId: 'pol_2' }),
    verdictKeys(state, content)({ ...rule, version: 4 }),
    verdictKeys(state, content)({ ...rule, text: 'No spam' }),
    verdictKeys(state, { ...content, text: '\ud800' })(rule),
    verdictKeys(state, { ...content, text: '\udfff' })(rule),
  ]
  expect(new Set(keys).size).toBe(keys.length)
  expect(verdictKeys(state, { ...content })({ ...rule })).toBe(keys[0])
})

test('a key says nothing of the text and has one length', () => {
  const key = verdictKeys(state, { ...content, text: 'canary'.repeat(1000) })
  expect(key({ ...rule, text: 'canary'.repeat(1000) })).toMatch(/^[A-Za-z0-9+/]{43}=$/)
})
