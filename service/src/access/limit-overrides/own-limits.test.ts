import { expect, test } from 'vitest'

import { areSameLimits, editLimits, findAboveOrganization, presentLimits } from './own-limits.ts'

const current = { requests_per_minute: 5, tokens_per_minute: 100 }

test.each([
  ['an absent edit keeps everything', undefined, current],
  ['an empty edit keeps everything', {}, current],
  ['null removes everything', null, {}],
  ['a null member removes one number', { requests_per_minute: null }, { tokens_per_minute: 100 }],
  ['an undefined member keeps its number', { requests_per_minute: undefined }, current],
  [
    'a number replaces one and keeps the others',
    { requests_per_minute: 6 },
    { ...current, requests_per_minute: 6 },
  ],
  ['a further number is added', { requests_per_day: 9 }, { ...current, requests_per_day: 9 }],
])('%s', (_, edit, expected) => {
  expect(editLimits(current, edit)).toEqual(expected)
})

test('limits are the same whatever the order of their numbers', () => {
  expect(areSameLimits(current, { tokens_per_minute: 100, requests_per_minute: 5 })).toBe(true)
  expect(areSameLimits(current, { requests_per_minute: 5 })).toBe(false)
  expect(areSameLimits({}, { requests_per_minute: 5 })).toBe(false)
})

test('without own limits null is shown, else every limit', () => {
  expect(presentLimits({})).toBe(null)
  expect(presentLimits({ requests_per_day: 3 })).toEqual({
    requests_per_minute: null,
    requests_per_day: 3,
    tokens_per_minute: null,
    concurrent_requests: null,
  })
})

test('only numbers of the change that are above the organization are found', () => {
  const organization = {
    requests_per_minute: 10,
    requests_per_day: 10,
    tokens_per_minute: 10,
    tokens_per_day: 10,
    concurrent_requests: 10,
  }
  expect(findAboveOrganization({ requests_per_minute: 10 }, organization)).toBe(undefined)
  expect(findAboveOrganization(null, organization)).toBe(undefined)
  expect(findAboveOrganization({ requests_per_day: null }, organization)).toBe(undefined)
  expect(
    findAboveOrganization({ requests_per_minute: 9, tokens_per_minute: 11 }, organization),
  ).toEqual({ name: 'tokens_per_minute', number: 11, limit: 10 })
})
