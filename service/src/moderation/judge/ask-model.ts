import { ScorerFailure } from '#moderation/scorer.ts'
import type { Clock } from '#platform/clock.ts'
import { type CallPool, createCallPool } from '#platform/lines/call-pool.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createJudgeHealth } from './judge-health.ts'
import {
  type JudgeCall,
  type JudgedContent,
  type JudgedRule,
  JudgeFailure,
  worstOf,
} from './judge.ts'
import type { JudgeModel } from './models/judge-model.ts'
import { noVerdict } from './models/judge-reply.ts'
import type { Work } from './shared-calls.ts'
import { firstOfTwo } from './two-tries.ts'

export type AskingOptions = {
  model: JudgeModel
  metrics: Pick<Metrics, 'judgeCalls' | 'judgeIsPausing'>
  /** A steady one: it measures durations. */
  now: Clock
  deadlineMs: number
  hedgeMs: number
  pool?: CallPool
}

type Question = {
  rules: readonly JudgedRule[]
  content: JudgedContent
  /** The question is about a text with several unknown pieces, so its sender has caused many calls. */
  isOneOfMany: boolean
}

/** The pool of calls, which all judges of a process may share across configurations. */
export const createJudgePool = (atOnce = 16) =>
  createCallPool({
    atOnce,
    waitingMax: 1024,
    waitingOfOneMax: 128,
    createRefusal: (mayBeByCaller) =>
      new JudgeFailure('overloaded', 'Too many texts wait for the judge.', { mayBeByCaller }),
  })

/** Asks the model when it is the organization's turn, at most twice, and not while the model keeps failing. */
export function createAsking(options: AskingOptions) {
  const { hedgeMs, now, pool = createJudgePool() } = options
  const { health, ask: askOnce } = createTries(options)

  /** Asks in a place of the pool that has already been taken. */
  async function tryOnce(question: Question, signal: AbortSignal) {
    try {
      health.check()
      return await askOnce(question, signal)
    } finally {
      pool.leave()
    }
  }

  return {
    isPausing: health.isPausing,
    ask(question: Question, call: JudgeCall): Work<readonly number[]> {
      const { organizationId, signal, beforeAsking } = call
      const failures: unknown[] = []
      let begunMs = Infinity

      const begin = (trySignal: AbortSignal) =>
        tryOnce(question, trySignal).catch((error: unknown) => {
          if (!trySignal.aborted) failures.push(error)
          throw error
        })
      async function askInTurn() {
        await beforeAsking?.()
        await pool.enter(organizationId, signal)
        begunMs = now().getTime()
        const mayBeginSecond = () => !health.isPausing() && pool.tryEnter()
        const tries = { begin, mayBeginSecond, isWorthRetrying, isFinal, hedgeMs, signal }
        return firstOfTwo(tries).catch((error: unknown) => {
          throw worstOf([error, ...failures])
        })
      }

      return {
        result: askInTurn(),
        hindrance() {
          // A text that once made the judge answer with nonsense may make it slow the next time.
          if (failures.length > 0) return worstOf(failures) as Error
          return hadTime(question, begunMs, options) ? undefined : lateByCaller()
        },
      }
    },
  }
}
export type Asking = ReturnType<typeof createAsking>

/** Makes single calls to the model, and records what they say about its health. */
function createTries(options: AskingOptions) {
  const { model, metrics, now } = options
  const health = createJudgeHealth(now)

  function record(outcome: Parameters<typeof health.record>[0]) {
    health.record(outcome)
    metrics.judgeCalls.inc({ outcome })
    metrics.judgeIsPausing.set(health.isPausing() ? 1 : 0)
  }

  return {
    health,
    async ask(question: Question, signal: AbortSignal) {
      const { rules, content } = question
      const sinceMs = now().getTime()
      try {
        const scores = await model.ask(rules, content, signal)
        if (scores.length !== rules.length || !scores.every(isShare))
          throw noVerdict('The judge did not answer for each rule once.')
        record('verdict')
        return scores
      } catch (error) {
        const failure = toFailure(error, signal)
        const isBlamed = failure?.kind !== 'late' || hadTime(question, sinceMs, options)
        record(failure && isBlamed ? failure.kind : 'nothing')
        throw isBlamed ? (failure ?? error) : lateByCaller()
      }
    },
  }
}

/** Whether a question that began at that time had enough time that a missing answer is the judge's fault. */
function hadTime(
  { isOneOfMany }: Question,
  begunMs: number,
  { now, deadlineMs, hedgeMs }: AskingOptions,
): boolean {
  return !isOneOfMany && now().getTime() - begunMs >= Math.min(hedgeMs, deadlineMs / 2)
}

/** Callers can cause this by sending many texts or long ones. */
const lateByCaller = () =>
  new JudgeFailure('late', 'There was too little time to ask the judge.', { mayBeByCaller: true })

/** False for NaN, too. */
const isShare = (score: number) => score >= 0 && score <= 1

/**
 * Retried at once, because a broken connection or an odd reply is often the last one. A judge that asks for fewer calls is not
 * retried.
 */
const isWorthRetrying = (error: unknown) =>
  error instanceof JudgeFailure && (error.kind === 'unavailable' || error.kind === 'no_verdict')

/** A wrong key must not become "late" only because the other try is slow: otherwise calls could pass with a wrong key. */
const isFinal = (error: unknown) => error instanceof JudgeFailure && error.isMisconfigured

/** Undefined if we ended the try, which says nothing about the judge. */
function toFailure(error: unknown, signal: AbortSignal): JudgeFailure | undefined {
  if (signal.aborted) return signal.reason instanceof JudgeFailure ? signal.reason : undefined
  if (error instanceof JudgeFailure) return error
  if (error instanceof ScorerFailure && error.kind === 'timeout')
    return new JudgeFailure('late', 'The judge did not answer in time.')
  if (error instanceof ScorerFailure && error.kind === 'overloaded')
    return new JudgeFailure('overloaded', 'Too many calls to the judge are open.')
  return new JudgeFailure('unavailable', 'The judge cannot be reached.', { cause: error })
}
