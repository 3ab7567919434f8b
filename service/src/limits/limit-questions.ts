import { randomUUID } from 'node:crypto'

import type { Principal } from '#http/principal.ts'
import { rateLimitExceeded } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'

import type { Limited, LimitsOf } from './effective-limits.ts'
import type { Limiter } from './limiter.ts'
import type { LimitTable } from './limits-file.ts'
import { type Limits, unlimited } from './limits.ts'
import { tierOf } from './tiers.ts'

/** Whom an organization's calls have asked at the operator's expense. */
type AskedModel = 'scorer' | 'judge' | 'rewriter' | 'guardrail'

/** How many questions an organization has by default, for each of its requests per minute. */
const questionsPerRequest: Readonly<Record<AskedModel, number>> = {
  scorer: 60,
  judge: 10,
  rewriter: 1,
  guardrail: 60,
}
const questionsLeast = 120

/** The questions of one organization to one of these models. */
type Questions = {
  /** Counts questions that are about to be asked; throws 429 if there are too many in this minute. */
  begin(questions: number): Promise<void>
  /** Counts questions that are asked regardless of the limit, such as those about the answer to an admitted call. */
  add(questions: number): void
  /** Throws 429 if there have been too many already. For calls whose answers will cause questions. */
  check(): Promise<void>
}
export type QuestionsOf = Readonly<Record<AskedModel, Questions>>

type Deps = {
  limiter: Limiter
  limitsOf: LimitsOf
  table: () => LimitTable
  now: Clock
  steadyNow: Clock
  metrics: Metrics
}

type Asked = { organizationId: string; model: AskedModel }
type Asking = Limited & Pick<Principal, 'organizationId'>

/** The number of the operator's file, or a multiple of the organization's requests per minute. */
export function questionLimit(
  model: AskedModel,
  caller: Limited,
  { limitsOf, table }: Pick<Deps, 'limitsOf' | 'table'>,
): number {
  const given = table().file[tierOf(caller)]?.organization?.[`${model}_questions_per_minute`]
  const requests = limitsOf(caller).organization.requests_per_minute
  return given ?? Math.max(questionsLeast, questionsPerRequest[model] * requests)
}

/**
 * Counts what one organization has scorers, the judge, the rewriter and the operator's guardrails asked, so that it cannot use up what all of them share.
 * The counters are those of calls: who is asked takes the place of the key, and questions that of tokens. So all processes
 * count together, and while Redis is away each has its share.
 */
export function createQuestionLimit(deps: Deps) {
  const limitsFor = createLimitsFor()
  /** The last known number of an organization's questions, of all processes together. */
  const lastKnown = new BoundedMap<string, { used: number; atMs: number }>(knownMax)
  const nowMs = () => deps.steadyNow().getTime()

  async function count(asked: Asked, questions: number, limits: Limits) {
    const { organizationId, model } = asked
    const scopes = { organizationId, projectId: '', keyId: model }
    const call = { ...scopes, tokens: questions, leaseId: randomUUID(), leaseMs: 0 }
    const { verdict } = await deps.limiter(call, limits)
    const used = verdict.usage.key.tokens_per_minute
    lastKnown.set(`${organizationId} ${model}`, { used, atMs: nowMs() })
    return verdict.refusal
  }

  async function require(asked: Asked, limit: number, questions: number) {
    const refusal = await count(asked, questions, limitsFor(limit))
    if (refusal) throw refuse(asked.model, limit, refusal.waitMs)
  }

  const open = (caller: Asking, model: AskedModel): Questions => {
    const asked = { organizationId: caller.organizationId, model }
    const add = (questions: number) => {
      // The limiter goes on without Redis. Should it fail nevertheless, no call may fail because of it.
      count(asked, questions, noLimits).catch(() => undefined)
    }
    return {
      add,
      async begin(questions) {
        const limit = questionLimit(model, caller, deps)
        // A request with more questions than a minute allows is admitted if no others were asked. It uses up the following
        // minutes.
        const checked = Math.min(questions, limit)
        await require(asked, limit, checked)
        if (questions > checked) add(questions - checked)
      },
      async check() {
        const known = lastKnown.get(`${asked.organizationId} ${model}`)
        // Redis is asked only if there may be too many questions, so most calls need no further round trip.
        if (!known || nowMs() - known.atMs > minuteMs) return
        const limit = questionLimit(model, caller, deps)
        if (known.used > limit) await require(asked, limit, 0)
      },
    }
  }

  function refuse(model: AskedModel, limit: number, waitMs: number) {
    deps.metrics.limitsRefused.inc({ kind: 'questions', scope: 'organization', metric: model })
    return rateLimitExceeded({
      hasEvent: true,
      what: `${model} questions per minute`,
      where: 'organization',
      scope: 'organization',
      limit,
      waitMs,
      now: deps.now(),
    })
  }

  return (caller: Asking): QuestionsOf => ({
    scorer: open(caller, 'scorer'),
    judge: open(caller, 'judge'),
    rewriter: open(caller, 'rewriter'),
    guardrail: open(caller, 'guardrail'),
  })
}

const noLimits: Limits = { organization: unlimited, project: unlimited, key: unlimited }

const numbersMax = 1000
const knownMax = 50_000
/** A minute, and the second in which a question was counted. */
const minuteMs = 61_000

/** Limits are packed for Redis once per object. */
function createLimitsFor() {
  const known = new BoundedMap<number, Limits>(numbersMax)
  return (limit: number): Limits => {
    const limits = known.get(limit) ?? {
      ...noLimits,
      key: { ...unlimited, tokens_per_minute: limit },
    }
    known.set(limit, limits)
    return limits
  }
}
