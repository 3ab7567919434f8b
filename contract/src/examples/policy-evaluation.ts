import type * as contract from '../policy-evaluation.ts'
import { type ExampleOf, ids, morning } from './example.ts'

const examples: contract.PolicyExample[] = [
  { text: 'Write to jane@example.com.', direction: 'request', expect: 'must_match' },
  { text: 'Write to our support team.', direction: 'request', expect: 'must_not_match' },
]

const kept: contract.PolicyExamples = {
  object: 'organization.policy.examples',
  policy_id: ids.policy,
  revision: 2,
  examples,
}

const counted: contract.PolicyDecisionCount = {
  id: 'decisions_WzE3OTM2MTAwMDAsMV0',
  object: 'organization.policy.decisions',
  start: morning,
  version: 1,
  project_id: ids.project,
  direction: 'request',
  decision: 'allow',
  mode: 'monitoring',
  count: 17,
}

const params = { policy_id: ids.policy }

export const policyEvaluationExamples = {
  evaluatePolicy: {
    params,
    body: { texts: [{ text: 'Write to jane@example.com.', direction: 'request' }] },
    answer: {
      results: [
        {
          score: 10_000,
          matched: true,
          matches: [{ start: 9, end: 25, pattern: '[a-z]{1,64}@example[.]com' }],
          cut: null,
          judge_calls: 0,
          took_ms: 0.2,
        },
      ],
      holdback: 'none',
    },
  } satisfies ExampleOf<typeof contract.evaluatePolicy>,
  replayPolicy: {
    params: { policy_id: ids.policy },
    body: { requests: 1000 },
    answer: {
      object: 'organization.policy.replay',
      policy_id: ids.policy,
      revision: 3,
      result: 'replayed',
      reason: null,
      requests: 1000,
      since: morning,
      projects: [
        {
          project_id: ids.project,
          requests: 1000,
          unchanged: 988,
          newly_refused: 12,
          no_longer_refused: 0,
          newly_noted: 0,
          no_longer_noted: 0,
          unknown: 0,
        },
      ],
      examples: null,
    },
  } satisfies ExampleOf<typeof contract.replayPolicy>,
  readPolicyExamples: { params, answer: kept } satisfies ExampleOf<
    typeof contract.readPolicyExamples
  >,
  replacePolicyExamples: {
    params,
    body: { revision: 1, examples },
    answer: kept,
  } satisfies ExampleOf<typeof contract.replacePolicyExamples>,
  readPolicyDecisions: {
    params,
    query: { from: '2026-11-02', to: '2026-11-02', by: 'hour' },
    answer: {
      object: 'list',
      data: [counted],
      has_more: false,
      first_id: counted.id,
      last_id: counted.id,
    },
  } satisfies ExampleOf<typeof contract.readPolicyDecisions>,
}
