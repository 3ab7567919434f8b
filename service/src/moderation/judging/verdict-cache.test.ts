import { expect, test } from 'vitest'

import { createVerdictCache, verdictKeys } from './verdict-cache.ts'

const state = { judgeId: 'generic:m', promptVersion: 'rules-1', calibrationVersion: 'identity' }
const content = { direction: 'request' as const, context: 'before', text: 'now' }
const rule = { policyId: 'pol_1', version: 3, text: 'No spam.' }
const hour = 60 * 60 * 1000

test('a score is kept for 24 hours', () => {
  let nowMs = 0
  const cache = createVerdictCache(() => new Date(nowMs))
  cache.set('key', 4200)
  nowMs = 24 * hour - 1
  expect(cache.get('key')).toBe(4200)
  nowMs = 24 * hour
  expect(cache.get('key')).toBeUndefined()
})

test('it has at most as many entries as it may have, and drops what was not asked for', () => {
  const cache = createVerdictCache(() => new Date(), { entriesMax: 2, ageMaxMs: hour })
  cache.set('a', 1)
  cache.set('b', 2)
  cache.get('a')
  cache.set('c', 3)
  expect(['a', 'b', 'c'].map(cache.get)).toEqual([1, undefined, 3])
})

test('a verdict has another key whenever anything is different that it depends on', () => {
  const keys = [
    verdictKeys(state, content)(rule),
    verdictKeys({ ...state, judgeId: 'generic:n' }, content)(rule),
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
