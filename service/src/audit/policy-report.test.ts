import { expect, test } from 'vitest'

import {
  describePolicies,
  type MatchReport,
  nothingFound,
  type PolicyReport,
} from './policy-report.ts'

const matchOf = (policy_id: string, mode: MatchReport['mode'] = 'monitoring'): MatchReport => ({
  policy_id,
  version: 1,
  direction: 'request',
  mode,
  score: 10_000,
  threshold: 5000,
})
const nothing: PolicyReport = { ...nothingFound, epoch: 4 }
const refusedBy = {
  policyId: 'pol_last',
  policyName: 'Last',
  version: 1,
  reasonCode: 'RULE_MATCHED',
}

test('a call that no policy refused is allowed, and lists are there only where they have members', () => {
  expect(describePolicies(nothing)).toStrictEqual({
    policy_epoch: 4,
    decision: 'allow',
    effective_decision: 'allow',
    enforced: false,
    reason_code: null,
    policy_id: null,
    policy_name: null,
    version: null,
  })
})

test('of more than 50 matches the one that decided stays, and enforcing ones stay before others', () => {
  const matches = [
    ...Array.from({ length: 60 }, (_, index) => matchOf(`pol_${index}`)),
    matchOf('pol_other', 'enforcing'),
    matchOf('pol_last', 'enforcing'),
  ]
  const listed = describePolicies({ ...nothing, refusedBy, matches }).matches ?? []
  expect(listed).toHaveLength(50)
  expect(listed.slice(0, 3).map(({ policy_id }) => policy_id)).toEqual([
    'pol_last',
    'pol_other',
    'pol_0',
  ])
})

test('50 matches are listed as they were found', () => {
  const matches = Array.from({ length: 50 }, (_, index) => matchOf(`pol_${index}`))
  expect(describePolicies({ ...nothing, refusedBy, matches }).matches).toEqual(matches)
})

test('features are there where policies applied, at most 200 scores', () => {
  const score = { policy_id: 'pol_1', version: 1, direction: 'request' as const, score: 17 }
  const featuresOf = (scores: number, categories: { category: string; score: number }[] = []) =>
    describePolicies({
      ...nothing,
      features: { scores: Array.from({ length: scores }, () => score), categories },
    })
  expect(featuresOf(0).scores).toEqual([])
  expect(featuresOf(0)).not.toHaveProperty('category_scores')
  expect(featuresOf(201).scores).toHaveLength(200)
  const hate = { category: 'hate', score: 0.25 }
  expect(featuresOf(1, [hate])).toMatchObject({ scores: [score], category_scores: [hate] })
})
