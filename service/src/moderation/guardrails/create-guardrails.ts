import { BoundedMap } from '#platform/bounded-map.ts'
import { type Breaker, createBreaker } from '#platform/breaker.ts'
import type { Clock } from '#platform/clock.ts'
import { within } from '#platform/deadline.ts'
import { type CallPool, createCallPool } from '#platform/lines/call-pool.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { askGuardrail, type GuardrailOutcome } from './ask-guardrail.ts'
import { GuardrailFailure, type GuardrailProblem } from './guardrail-failure.ts'
import type { Guardrail } from './guardrail.ts'
import type { GuardrailQuestion } from './question.ts'
import type { SendQuestion } from './send-question.ts'

type Deps = {
  send: SendQuestion
  now: Clock
  steadyNow: Clock
  log: Log
  metrics: Pick<Metrics, 'guardrailQuestions' | 'guardrailFailures' | 'guardrailSeconds'>
}

/** Asks a guardrail for a call. Throws nothing but the reason of the signal. */
export type AskForCall = (
  guardrail: Guardrail,
  question: GuardrailQuestion,
  signal: AbortSignal,
) => Promise<GuardrailOutcome>

/** What this process knows of a guardrail. */
type Known = { readonly pool: CallPool; readonly breaker: Breaker; lastFailure?: GuardrailFailure }

const knownMax = 10_000
/** One organization with a slow guardrail must not take the connections that the others need. */
const atOnce = { operator: 128, organization: 32 } as const

/**
 * Failures that say something about the guardrail. The others depend on the texts: a caller could otherwise send a few odd ones
 * and so keep the operator's guardrail from everybody else.
 */
const countsAgainst: ReadonlySet<GuardrailProblem> = new Set<GuardrailProblem>([
  'misconfigured',
  'unreachable',
  'late',
  'status',
])
/** A guardrail may need longer than its deadline for more, so that it is not to blame. */
const quickMostCharacters = 20_000

/**
 * Guardrails as calls ask them: a few questions to each at a time, for whose places organizations take turns, and none for a
 * moment where it keeps failing.
 */
export function createGuardrails(deps: Deps): AskForCall {
  const { steadyNow, log, metrics } = deps
  const logFailure = createLogThrottle({ log, now: steadyNow })
  const known = new BoundedMap<string, Known>(knownMax)

  function find(guardrail: Guardrail): Known {
    const key = keyOf(guardrail)
    const found = known.get(key) ?? {
      pool: createPool(atOnce[kindOf(guardrail)]),
      breaker: createBreaker({ now: steadyNow, failuresMax: 5, pauseMs: 5000 }),
    }
    known.set(key, found)
    return found
  }

  function note(guardrail: Guardrail, texts: GuardrailQuestion['texts'], failed: GuardrailFailure) {
    const { problem, message, cause } = failed
    const kind = kindOf(guardrail)
    metrics.guardrailFailures.inc({ kind, problem })
    // Those of organizations are theirs to look after.
    if (kind === 'operator')
      logFailure(
        'guardrail_failed',
        new Error(`${guardrail.name}, ${problem}: ${message}`, { cause }),
      )
    const isBlamed = problem !== 'late' || lengthOf(texts) <= quickMostCharacters
    if (!countsAgainst.has(problem) || !isBlamed) return
    const own = find(guardrail)
    own.lastFailure = failed
    own.breaker.failed()
  }

  return async (guardrail, question, signal) => {
    const kind = kindOf(guardrail)
    const { pool, breaker, lastFailure } = find(guardrail)
    if (!breaker.mayTry()) {
      metrics.guardrailFailures.inc({ kind, problem: 'paused' })
      return { kind: 'failed', failure: paused(guardrail, lastFailure) }
    }
    metrics.guardrailQuestions.inc({ kind })
    const stopTimer = metrics.guardrailSeconds.startTimer({ kind })
    try {
      const outcome = await askInTurn(deps, pool, { guardrail, question, signal })
      if (outcome.kind === 'failed') note(guardrail, question.texts, outcome.failure)
      else breaker.succeeded()
      return outcome.kind === 'failed'
        ? { kind: 'failed', failure: ownedBy(guardrail, outcome.failure) }
        : outcome
    } finally {
      stopTimer()
    }
  }
}

type Asking = { guardrail: Guardrail; question: GuardrailQuestion; signal: AbortSignal }

/** A question that waits for its turn has no more time than another one. */
async function askInTurn(
  { send, now }: Deps,
  pool: CallPool,
  { guardrail, question, signal }: Asking,
): Promise<GuardrailOutcome> {
  const startedAtMs = performance.now()
  try {
    await within(guardrail.deadlineMs, overloaded, (deadline) =>
      pool.enter(question.organizationId, AbortSignal.any([signal, deadline])),
    )
  } catch (error) {
    if (signal.aborted || !(error instanceof GuardrailFailure)) throw error
    return { kind: 'failed', failure: error }
  }
  try {
    const waitedMs = Math.floor(performance.now() - startedAtMs)
    const deadlineMs = Math.max(1, guardrail.deadlineMs - waitedMs)
    return await askGuardrail({ send, now }, { ...guardrail, deadlineMs }, question, signal)
  } finally {
    pool.leave()
  }
}

const createPool = (places: number) =>
  createCallPool({
    atOnce: places,
    waitingMax: 4096,
    waitingOfOneMax: 1024,
    createRefusal: overloaded,
  })

const overloaded = () =>
  new GuardrailFailure('overloaded', 'Too many questions wait for the guardrail.')

const paused = (guardrail: Guardrail, cause: GuardrailFailure | undefined) =>
  ownedBy(
    guardrail,
    new GuardrailFailure(
      'paused',
      'The guardrail has failed too often and is not asked for a moment.',
      { cause },
    ),
  )

const ownedBy = ({ id }: Guardrail, failure: GuardrailFailure): GuardrailFailure =>
  id === null ? failure : failure.asOfOrganization()

const kindOf = ({ id }: Guardrail) => (id === null ? 'operator' : 'organization')

/** One that was changed is another one: what was wrong with it may be corrected. */
const keyOf = ({ id, name, url }: Guardrail) => JSON.stringify([id, id === null ? name : null, url])

const lengthOf = (texts: GuardrailQuestion['texts']) =>
  texts.reduce((sum, { text }) => sum + text.length, 0)
