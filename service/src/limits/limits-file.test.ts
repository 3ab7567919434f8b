import { readFileSync } from 'node:fs'

import { Tier } from '@gatehouse/contract/limits'
import { expect, test } from 'vitest'

import { defaultTable, readLimitsFile } from './limits-file.ts'
import { limitsByTier } from './tiers.ts'

const repositoryFile = (path: string) =>
  readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

const read = (file: object) => readLimitsFile(JSON.stringify(file))

function complaint(text: string): string {
  try {
    readLimitsFile(text)
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('nothing is wrong')
}

/** A row of docs/limits.md: tier, scope, and its numbers, `none` where there is no limit. */
const tableRow =
  /^\| `(\w+)` \| (key|project|organization) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+|none) \| ([\d,]+) \|$/gm

test('every number of the built-in table is that of docs/limits.md', () => {
  const documented: Record<string, Record<string, unknown>> = {}
  const number = (text = '') => (text === 'none' ? Infinity : Number(text.replaceAll(',', '')))
  for (const [, tier = '', scope = '', ...numbers] of repositoryFile('docs/limits.md').matchAll(
    tableRow,
  )) {
    const [requests, dailyRequests, tokens, dailyTokens, slots] = numbers.map(number)
    documented[tier] = {
      ...documented[tier],
      [scope]: {
        requests_per_minute: requests,
        requests_per_day: dailyRequests,
        tokens_per_minute: tokens,
        tokens_per_day: dailyTokens,
        concurrent_requests: slots,
      },
    }
  }
  expect(documented).toEqual(limitsByTier)
})

test('the example file is complete, and gives every tier its built-in numbers', () => {
  const text = repositoryFile('deploy/limits.example.json')
  expect(readLimitsFile(text).byTier).toEqual(limitsByTier)
  for (const tier of Tier.options) {
    const given = Object.entries(JSON.parse(text)[tier] as object).map(([scope, numbers]) => [
      scope,
      Object.keys(numbers as object).length,
    ])
    expect(Object.fromEntries(given)).toEqual({ organization: 5, project: 4, key: 4 })
  }
})

test('an empty file changes nothing', () => {
  expect(read({}).byTier).toEqual(defaultTable.byTier)
  expect(read({ free: {}, tier_1: { key: {} } }).byTier).toEqual(defaultTable.byTier)
})

test('what a file leaves out keeps its built-in number', () => {
  const { byTier } = read({ tier_1: { key: { requests_per_minute: 7 }, organization: {} } })
  const { tier_1: changed, ...others } = byTier
  const { tier_1: builtIn, ...otherBuiltIn } = limitsByTier
  expect(changed).toEqual({ ...builtIn, key: { ...builtIn.key, requests_per_minute: 7 } })
  expect(others).toEqual(otherBuiltIn)
})

test('a number may be as high as the organization number of the file, and no higher', () => {
  const both = { organization: { requests_per_minute: 5000 }, key: { requests_per_minute: 5000 } }
  expect(read({ free: both }).byTier.free.key.requests_per_minute).toBe(5000)
  const above = { ...both, key: { requests_per_minute: 5001 } }
  expect(complaint(JSON.stringify({ free: above }))).toBe(
    '  free.key.requests_per_minute: is 5001, more than the 5000 of free.organization.requests_per_minute',
  )
})

test('a file may lower the number of the organization alone', () => {
  const { byTier } = read({ tier_5: { organization: { concurrent_requests: 3 } } })
  expect(byTier.tier_5.organization.concurrent_requests).toBe(3)
  expect(byTier.tier_5.key).toEqual(limitsByTier.tier_5.key)
  expect(complaint('{"free": {"key": {"concurrent_requests": 9}}}')).toBe(
    '  free.key.concurrent_requests: is 9, more than the 8 of free.organization.concurrent_requests',
  )
})

const key = (number: unknown) => ({ free: { key: { requests_per_minute: number } } })

test.each([
  ['not JSON', '{ "free": ', /^ {2}the file: is not JSON \(.+\)$/],
  ['a list', '[]', /^ {2}the file: must be a record$|^ {2}the file: must be an object$/],
  ['null', 'null', /^ {2}the file: must be /],
  ['an unknown tier', '{"tier_6": {}}', /^ {2}.*tier_6/],
  ['an unknown scope', '{"free": {"team": {}}}', /^ {2}free: has no member 'team'$/],
  ['an unknown limit', '{"free": {"key": {"rpm": 1}}}', /^ {2}free\.key: has no member 'rpm'$/],
  [
    'tokens per day of a key',
    '{"free": {"key": {"tokens_per_day": 1}}}',
    /^ {2}free\.key: has no member 'tokens_per_day'$/,
  ],
  ['zero', JSON.stringify(key(0)), /^ {2}free\.key\.requests_per_minute: must be at least 1$/],
  ['a negative number', JSON.stringify(key(-5)), /requests_per_minute: must be at least 1$/],
  ['a fraction', JSON.stringify(key(1.5)), /requests_per_minute: must be an integer$/],
  ['a text', JSON.stringify(key('60')), /requests_per_minute: must be a number$/],
  ['null as a number', JSON.stringify(key(null)), /requests_per_minute: must be a number$/],
  ['too many', JSON.stringify(key(1e9 + 1)), /requests_per_minute: must be at most 1000000000$/],
])('%s is refused, and the message names the member', (_, text, message) => {
  expect(complaint(text)).toMatch(message)
})

test('everything that is wrong is in one error', () => {
  const file = { free: { key: { requests_per_minute: 0 } }, tier_2: { project: { tokens: 1 } } }
  expect(complaint(JSON.stringify(file)).split('\n')).toHaveLength(2)
})
