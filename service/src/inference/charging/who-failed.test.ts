import { expect, test } from 'vitest'

import { answerBeyondLimits, answerUnjudged } from '#inference/enforcement/refusals.ts'
import { TotalTimeout, toFailure } from '#inference/upstreams/upstream-failure.ts'
import {
  GuardrailFailure,
  type GuardrailProblem,
} from '#moderation/guardrails/guardrail-failure.ts'
import { createJudgePool } from '#moderation/judge/ask-model.ts'
import { JudgeFailure, type JudgeFailureKind } from '#moderation/judge/judge.ts'
import { ScorerFailure, type ScorerProblem } from '#moderation/scorer.ts'
import { ApiError } from '#platform/api-error.ts'
import { ScorerUnavailable } from '#policies/guard/window-queue.ts'
import { SearchTooSlow } from '#policies/rules/search-in-threads.ts'

import { isByCaller } from './who-failed.ts'

const judge = (kind: JudgeFailureKind, mayBeByCaller = false) =>
  new JudgeFailure(kind, 'No verdict.', { mayBeByCaller })
const scorer = (problem: ScorerProblem, mayBeByCaller = false) =>
  new ScorerFailure(problem, 'No scores.', { mayBeByCaller })

const guardrail = (problem: GuardrailProblem, isOfOrganization = false) =>
  new GuardrailFailure(problem, 'No decision.', { isOfOrganization })

test.each([
  ['the operator’s guardrail answers with nonsense', guardrail('malformed')],
  ['the operator’s guardrail wants what cannot be', guardrail('unwritable')],
  ['their own guardrail is late', guardrail('late', true)],
  ['their own guardrail refuses this gateway', guardrail('misconfigured', true)],
  ['their own guardrail is left alone', guardrail('paused', true)],
  ['the judge has no verdict on a text', judge('no_verdict')],
  ['a text is too long for the judge', judge('too_long')],
  ['the judge is late, because the organization asks too much', judge('late', true)],
  ['the organization’s own line to the judge is full', judge('overloaded', true)],
  ['a scorer answers with nonsense', scorer('malformed')],
  ['a scorer does not take a text', scorer('rejected')],
  ['a text is too long for a scorer', scorer('too_long')],
  ['a scorer is slow, because the organization asks too much', scorer('timeout', true)],
  ['an answer is too large', answerBeyondLimits()],
  ['patterns are too slow for the answer', new SearchTooSlow()],
  ['an answer takes longer than a call may', toFailure(new TotalTimeout()).error],
])('callers can bring it about that %s', (_, failure) => {
  const wrapped = answerUnjudged(new ScorerUnavailable('A score is missing.', { cause: failure }))
  expect([isByCaller(failure), isByCaller(wrapped)]).toEqual([true, true])
})

const stalled = Object.assign(new Error('stalled'), { code: 'UND_ERR_BODY_TIMEOUT' })

const byOthers: readonly (readonly [string, unknown])[] = [
  ...(['misconfigured', 'unavailable', 'throttled', 'late', 'overloaded'] as const).map(
    (kind) => [`the judge is ${kind}`, judge(kind)] as const,
  ),
  ...(
    ['misconfigured', 'unreachable', 'timeout', 'busy', 'error', 'paused', 'overloaded'] as const
  ).map((problem) => [`a scorer is ${problem}`, scorer(problem)] as const),
  ...(['misconfigured', 'unreachable', 'late', 'status', 'paused', 'overloaded'] as const).map(
    (problem) => [`the operator’s guardrail is ${problem}`, guardrail(problem)] as const,
  ),
  // What is known of the judge's failure counts, and not what led to it.
  [
    'the judge cannot be reached',
    new JudgeFailure('unavailable', 'No.', { cause: judge('late', true) }),
  ],
  ['the reason is unknown', new Error('odd')],
  ['an upstream stands still', toFailure(stalled).error],
  ['this process ends', new ApiError('overloaded', 'This process is shutting down.')],
  ['there is no failure', undefined],
]

test.for(byOthers)('callers cannot bring it about that %s', ([, failure]) => {
  const wrapped = answerUnjudged(new ScorerUnavailable('A score is missing.', { cause: failure }))
  expect([isByCaller(failure), isByCaller(wrapped)]).toEqual([false, false])
})

test('an organization that fills its own line to the judge has brought that about, and no other has', async () => {
  const pool = createJudgePool(1)
  const leaving = new AbortController()
  const enter = (organization: string) => pool.enter(organization, leaving.signal)
  await enter('org_1')
  const waiting = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((number) =>
    Array.from({ length: 128 }, () => enter(`org_${number}`).catch(() => 'left')),
  )
  const refusalOf = (organization: string) => enter(organization).catch((error: unknown) => error)
  expect(isByCaller(await refusalOf('org_1'))).toBe(true)
  const other = await refusalOf('org_9')
  expect([other instanceof JudgeFailure, isByCaller(other)]).toEqual([true, false])
  leaving.abort(new Error('over'))
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['left']))
})
