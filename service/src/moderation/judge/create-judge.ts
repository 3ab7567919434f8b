import { NotAsked } from '#moderation/scorer.ts'
import type { Clock } from '#platform/clock.ts'
import { within } from '#platform/deadline.ts'
import type { CallPool } from '#platform/lines/call-pool.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createAsking } from './ask-model.ts'
import { type Calibration, uncalibrated } from './calibration.ts'
import { endAll } from './end-all.ts'
import { type Group, groupRules } from './group-rules.ts'
import {
  type Judge,
  type JudgeCall,
  type JudgedContent,
  type JudgedRule,
  JudgeFailure,
  worstOf,
} from './judge.ts'
import type { JudgeModel } from './models/judge-model.ts'
import { splitContent } from './split-content.ts'
import { createTwoLooks, type JudgedPiece } from './two-looks.ts'
import { type JudgeState, type VerdictCache, verdictKeys } from './verdict-cache.ts'

export type JudgeOptions = {
  /** Identifies the adapter, the model and its snapshot. Everything that changes the judge's verdicts must change it. */
  id: string
  model: JudgeModel
  /** The cache may outlive the judge. The verdicts of one judge are never found by another. */
  cache: VerdictCache
  metrics: Pick<Metrics, 'judgeCalls' | 'judgeIsPausing' | 'judgeSeconds' | 'judgeVerdicts'>
  /** A steady one: it measures durations. */
  now: Clock
  calibration?: Calibration
  /** The deadline of all rules and both looks together. */
  deadlineMs?: number
  hedgeMs?: number
  pool?: CallPool
}

/**
 * Read this first: it shows how a text gets its scores. `two-looks.ts` continues with one group of rules, and `ask-model.ts`
 * with one call.
 */
export function createJudge(options: JudgeOptions): Judge {
  const { id, model, cache, metrics, now, calibration = uncalibrated } = options
  const { deadlineMs = 800, hedgeMs = 400 } = options
  const asking = createAsking({ ...options, deadlineMs, hedgeMs })
  const judgeGroup = createTwoLooks({ judgeId: id, calibration, asking })
  const { promptVersion } = model
  const openPiece = createPieces({
    state: { judgeId: id, promptVersion, calibrationVersion: calibration.version },
    cache,
    metrics,
  })

  /** Fills in the scores as verdicts arrive. */
  async function judgeAll(
    rules: readonly JudgedRule[],
    contents: readonly JudgedContent[],
    call: JudgeCall,
    scores: Map<string, number>,
  ) {
    const groups = groupRules(rules, model.rulesPerCall)
    const pieces = contents.map((content) => openPiece(content, call, scores))
    const isKnown = ({ recall }: Piece) => rules.every((rule) => recall(rule) !== undefined)
    // The verdicts on earlier pieces of a long chat are known from the turn before.
    const isOneOfMany = pieces.filter((piece) => !isKnown(piece)).length > 1
    const judged = pieces.map((piece) => ({ ...piece, isOneOfMany }))
    if (!model.isLocal) await beginQuestions(call, countUnknown(groups, pieces))
    await endAll(judged.flatMap((piece) => groups.map((group) => judgeGroup(group, piece))))
  }

  return {
    id,
    calibrationVersion: calibration.version,
    isPausing: asking.isPausing,
    async judge(rules, content, asked) {
      const { signal } = asked
      const contents = splitContent(content)
      const scores = new Map<string, number>()
      const sinceMs = now().getTime()
      let work: Promise<void> = Promise.resolve()
      try {
        const questions = model.isLocal ? undefined : asked.questions
        const judgeText = (either: AbortSignal) =>
          (work = judgeAll(rules, contents, { ...asked, questions, signal: either }, scores))
        await within(deadlineMs, late, judgeText, signal)
        return scores
      } catch (error) {
        signal.throwIfAborted()
        const atLeast = new Map(scores) // later verdicts are too late
        // At the deadline all questions end at once, and one of them may know why there was too little time.
        const [ended] = await Promise.allSettled([work])
        throw withScores(
          ended.status === 'rejected' ? worstOf([error, ended.reason]) : error,
          atLeast,
        )
      } finally {
        metrics.judgeSeconds.observe((now().getTime() - sinceMs) / 1000)
      }
    },
  }
}

/** Counts the first questions; throws if there are too many. Second questions, about rules that may match, are only added. */
async function beginQuestions({ questions, isKnownOnly }: JudgeCall, count: number) {
  if (count === 0) return
  if (isKnownOnly) throw new NotAsked('judge')
  await questions?.begin(count)
}

/** How many groups of rules need a question, in all pieces together. */
const countUnknown = (groups: readonly Group[], pieces: readonly Piece[]): number =>
  pieces.reduce(
    (sum, { recall }) =>
      sum + groups.filter((group) => group.some((rule) => recall(rule) === undefined)).length,
    0,
  )

function withScores(error: unknown, atLeast: ReadonlyMap<string, number>): unknown {
  if (!(error instanceof JudgeFailure)) return error
  const { kind, message, cause, mayBeByCaller } = error
  return new JudgeFailure(kind, message, { cause, mayBeByCaller, atLeast })
}

const late = () => new JudgeFailure('late', 'The judge did not answer in time.')

type Piece = Omit<JudgedPiece, 'isOneOfMany'>
type Keeping = {
  state: JudgeState
  cache: VerdictCache
  metrics: Pick<Metrics, 'judgeVerdicts'>
}

/** Reads and writes the verdicts on a piece of a text in the cache. The score of a text is the highest of its pieces. */
function createPieces({ state, cache, metrics }: Keeping) {
  return (content: JudgedContent, call: JudgeCall, scores: Map<string, number>): Piece => {
    const { organizationId } = call
    const keyOf = remember(verdictKeys(state, { ...content, organizationId }))
    return {
      content,
      call,
      keyOf,
      recall: (rule) => cache.get(organizationId, keyOf(rule)),
      settle(rule, basisPoints, source) {
        if (source !== 'cached') cache.set(organizationId, keyOf(rule), basisPoints)
        metrics.judgeVerdicts.inc({ source })
        scores.set(rule.policyId, Math.max(scores.get(rule.policyId) ?? 0, basisPoints))
      },
    }
  }
}

/** The key of a rule is needed up to four times. */
function remember(keyOf: (rule: JudgedRule) => string) {
  const keys = new Map<JudgedRule, string>()
  return (rule: JudgedRule): string => {
    const key = keys.get(rule) ?? keyOf(rule)
    keys.set(rule, key)
    return key
  }
}
