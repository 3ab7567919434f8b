import { z } from 'zod'

import { adminEndpoint } from './endpoint.ts'
import { Day, integerInQuery, listOf, ListQuery } from './list.ts'
import { changesManaged } from './managed.ts'
import { params, policyPath } from './policy.ts'
import { Revision, VersionNumber } from './revision.ts'
import { AnyId, idOf, storedText, Timestamp, Warnings } from './text.ts'

/** Texts to try a rule on are longer than what other calls of the family send. */
const textsLimitBytes = 256 * 1024

const Direction = z.enum(['request', 'response'])
const Score = z.int().min(0).max(10_000).describe('In basis points.')
const text = storedText(1, 20_000)

const PolicyTrial = z
  .strictObject({
    version: VersionNumber.optional().describe('A published version. Without it: the draft.'),
    texts: z
      .array(z.strictObject({ text, direction: Direction }))
      .min(1)
      .max(50),
  })
  .meta({ id: 'PolicyTrial' })

/** Where something is in a text. */
export const TextPlace = z.object({
  start: z.int().min(0).describe('In UTF-16 code units of the text as it was sent.'),
  end: z.int().min(0),
})

const TrialResult = z.object({
  score: Score,
  matched: z.boolean(),
  matches: z
    .array(
      TextPlace.extend({
        pattern: z
          .string()
          .describe('The pattern or the text that the rule looks for, or `pii("CARD")`.'),
      }),
    )
    .max(50)
    .describe('Where the patterns and texts of the rule occur, and what it counts, the first 50.'),
  cut: z
    .int()
    .min(0)
    .nullable()
    .describe('From here on nothing of an answer would be sent; null: all of it, or no answer.'),
  judge_calls: z
    .int()
    .min(0)
    .describe('How often the judge was asked; what it has said of the same text before is known.'),
  took_ms: z.number().min(0),
})

const PolicyTrialResults = z
  .object({
    results: z.array(TrialResult).max(50).describe('In the order of the texts.'),
    holdback: z
      .union([z.int().min(0), z.enum(['full', 'none'])])
      .describe('How many characters of a streamed answer an enforcing version would hold back.'),
    warnings: Warnings.optional(),
  })
  .meta({ id: 'PolicyTrialResults' })
export type PolicyTrialResults = z.infer<typeof PolicyTrialResults>

const PolicyExample = z
  .strictObject({ text, direction: Direction, expect: z.enum(['must_match', 'must_not_match']) })
  .meta({ id: 'PolicyExample' })
export type PolicyExample = z.infer<typeof PolicyExample>

const examples = z.array(PolicyExample).max(200)

const PolicyExamples = z
  .object({
    object: z.literal('organization.policy.examples'),
    policy_id: idOf('pol'),
    revision: Revision,
    examples,
  })
  .meta({ id: 'PolicyExamples' })
export type PolicyExamples = z.infer<typeof PolicyExamples>

export const PolicyDecisionCount = z
  .object({
    id: z.string().describe('Names the item for `after`, and nothing else.'),
    object: z.literal('organization.policy.decisions'),
    start: Timestamp.describe('The start of the hour or of the day, in UTC.'),
    version: VersionNumber,
    project_id: z.string().nullable(),
    direction: z
      .enum(['request', 'response', 'history'])
      .describe('`history`: in an earlier answer that the caller sent.'),
    decision: z.enum(['allow', 'refuse']),
    mode: z.enum(['monitoring', 'enforcing']),
    count: z.int().min(0),
  })
  .meta({ id: 'PolicyDecisionCount' })
export type PolicyDecisionCount = z.infer<typeof PolicyDecisionCount>

export const evaluatePolicy = adminEndpoint({
  id: 'evaluatePolicy',
  summary: 'Try the draft or a version of a policy on texts; nothing is changed or recorded',
  method: 'POST',
  path: `${policyPath}/evaluate`,
  permission: 'policies.write',
  params,
  body: PolicyTrial,
  bodyLimitBytes: textsLimitBytes,
  isIdempotent: false,
  response: PolicyTrialResults,
  errors: [
    'policy_not_found',
    'version_not_found',
    'policy_not_evaluable',
    'policy_evaluation_unavailable',
  ],
})

export const readPolicyExamples = adminEndpoint({
  id: 'readPolicyExamples',
  summary: 'Read the examples that a draft has to pass before it is published',
  method: 'GET',
  path: `${policyPath}/examples`,
  permission: 'policies.read',
  params,
  response: PolicyExamples,
  errors: ['policy_not_found'],
})

export const replacePolicyExamples = adminEndpoint({
  id: 'replacePolicyExamples',
  summary: 'Replace the examples that a draft has to pass before it is published',
  method: 'PUT',
  path: `${policyPath}/examples`,
  permission: 'policies.write',
  ...changesManaged,
  params,
  body: z.strictObject({ revision: Revision, examples }).meta({ id: 'PolicyExamplesEdit' }),
  bodyLimitBytes: textsLimitBytes,
  response: PolicyExamples,
  errors: ['policy_not_found', 'revision_conflict', 'limit_reached'],
})

const Requests = z.int().min(0)

/** In how many requests what the policy does would be another. */
const ReplayCounts = z.object({
  project_id: z.string().nullable(),
  requests: Requests.describe('All that were replayed: the sum of the other numbers.'),
  unchanged: Requests,
  newly_refused: Requests,
  no_longer_refused: Requests,
  newly_noted: Requests.describe('The policy would match, and only monitor.'),
  no_longer_noted: Requests,
  unknown: Requests.describe('What was recorded is not enough to tell.'),
})

const PolicyReplay = z
  .object({
    object: z.literal('organization.policy.replay'),
    policy_id: idOf('pol'),
    revision: Revision,
    result: z.enum(['replayed', 'not_replayable']),
    reason: z.string().nullable().describe('Why the draft cannot be replayed.'),
    requests: Requests.describe('Fewer than asked for if there are no more, or time was up.'),
    since: Timestamp.nullable().describe('The time of the oldest one; null: there are none.'),
    projects: z.array(ReplayCounts).max(1000).describe('Those with the most requests first.'),
    examples: z
      .array(
        z.object({
          index: z.int().min(0),
          expect: z.enum(['must_match', 'must_not_match']),
          score: Score,
          matched: z.boolean(),
        }),
      )
      .max(200)
      .nullable()
      .describe('What the draft makes of its examples, where it cannot be replayed.'),
  })
  .meta({ id: 'PolicyReplay' })
export type PolicyReplay = z.infer<typeof PolicyReplay>

export const replayPolicy = adminEndpoint({
  id: 'replayPolicy',
  summary: 'Say what the draft of a policy would have changed in the last requests',
  method: 'POST',
  path: `${policyPath}/replay`,
  permission: 'policies.write',
  params,
  body: z
    .strictObject({
      requests: z.int().min(1).max(10_000).default(1000).describe('How many, the newest first.'),
    })
    .meta({ id: 'PolicyReplayRequest' }),
  isIdempotent: false,
  response: PolicyReplay,
  errors: ['policy_not_found', 'policy_not_evaluable', 'policy_evaluation_unavailable'],
})

const cursorMaxLength = 1000

export const readPolicyDecisions = adminEndpoint({
  id: 'readPolicyDecisions',
  summary: 'Read how often a policy has matched, by hour or day',
  method: 'GET',
  path: `${policyPath}/decisions`,
  permission: 'policies.read',
  params,
  query: ListQuery.extend({
    after: storedText(1, cursorMaxLength).optional().describe('The last_id of the page before.'),
    limit: integerInQuery(1, 100).default(100).describe('How many items a page has at most.'),
    order: z.enum(['asc', 'desc']).default('asc').describe('By time.'),
    from: Day.optional().describe('The first day, in UTC. Without it: 30 days up to the last.'),
    to: Day.optional().describe(
      'The last day, in UTC. Without it: today. At most 31 days by hour, 366 by day.',
    ),
    by: z.enum(['hour', 'day']).default('day').describe('How long the time of an item is.'),
    project_id: AnyId.optional(),
  }),
  response: listOf(PolicyDecisionCount).meta({ id: 'PolicyDecisionList' }),
  errors: ['invalid_cursor', 'policy_not_found'],
})
