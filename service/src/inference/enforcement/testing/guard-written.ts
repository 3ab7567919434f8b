import { setImmediate } from 'node:timers/promises'

import type { Frame, Piece } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import { upstreamFormats } from '#formats/formats.ts'
import { plainSource } from '#formats/testing/meaning-of.ts'
import { createFindings, type Findings } from '#inference/enforcement/findings.ts'
import { guardAnswer } from '#inference/enforcement/guard/guard-answer.ts'
import { addCategories } from '#inference/enforcement/moderation/moderation.ts'
import type { ScoredAnswer } from '#inference/enforcement/moderation/score-answer.ts'
import {
  type JudgedAnswer,
  unjudgedAnswer,
} from '#inference/enforcement/plain-language/judge-answer.ts'
import { isBeyondLimits, isUnjudgedError } from '#inference/enforcement/refusals.ts'
import { toEndings } from '#inference/enforcement/rules/rule-endings.ts'
import type { Upstream } from '#inference/upstreams/catalogue.ts'
import { PieceReader } from '#inference/upstreams/read-pieces.ts'
import type { Category } from '#moderation/categories.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { StreamedAnswer } from '#platform/calls/streamed-answer.ts'
import type { Random } from '#policies/guard/testing/random-case.ts'
import { answerFacts } from '#policies/guard/testing/rule-set-of.ts'
import { oneScorer, scoreEach } from '#policies/guard/testing/score-each.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'

import type { WrittenAnswer } from './written-frame.ts'

export type Judges = {
  set: RuleSet
  rules: AnswerRules
  formats?: UpstreamFormats
  /** What the caller has written of the answer. */
  prefill?: string
  /** They end an answer, too. */
  categories?: readonly Category[]
  scored?: ScoredAnswer
  judged?: JudgedAnswer
  /** Between two arrivals. */
  pause?: () => Promise<unknown>
  /** What has arrived and what has left by then. */
  onPause?: (progress: Progress) => Promise<void>
}

type Progress = { readonly bytes: number; readonly leftFrames: number }

/** What came of an answer: who blocked it, what had left by then, and which monitoring rules matched. */
export type Guarded = {
  /** The id of a policy and the reason, a category, `unavailable`, or null where all of the answer has left. */
  end: string | null
  frames: number
  bytes: string
  monitored: string[]
}

export const blockedBy = (policyId: string | undefined, isError: boolean) =>
  `${policyId} ${isError ? 'RULE_ERROR' : 'REFUSE'}`

/** The stream arrives in pieces of any size, which may end inside of a character. */
export function guardStreamed(
  format: CallerFormatName,
  { frames, rest = '' }: WrittenAnswer,
  judges: Judges,
  random: Random,
): Promise<Guarded> {
  const bytes = Buffer.from(frames.map((frame) => frame.bytes).join('') + rest)
  const left: Frame[] = []
  const { pause = setImmediate, onPause } = judges
  const pieces = readPieces(format, bytes, {
    random,
    async wait(arrived) {
      await pause()
      await onPause?.({
        bytes: arrived,
        get leftFrames() {
          return left.length
        },
      })
    },
  })
  return guard(pieces, judges, left)
}

export function guardPlain(
  format: CallerFormatName,
  { body }: WrittenAnswer,
  judges: Judges,
): Promise<Guarded> {
  const frame = upstreamFormats.get(format)?.readPlain?.(plainSource(body))
  if (!frame) throw new Error(`The format ${format} has no plain answers.`)
  const piece: Piece = { format, frames: [frame], isPlain: true }
  const pieces = (async function* () {
    yield piece
  })()
  return guard(pieces, judges)
}

type Feeding = { random: Random; wait(arrivedBytes: number): Promise<void> }

/** The bytes of a stream as they arrive, in pieces of any size. */
export async function* readPieces(
  format: CallerFormatName,
  bytes: Buffer,
  feeding: Feeding,
): AsyncGenerator<Piece> {
  const answer = new StreamedAnswer()
  answer.onHead(200, {})
  const upstream = { secret: null } as Upstream
  const reader = new PieceReader(answer, { format: upstreamFormats.get(format)!, upstream })
  const feedingEnd = new AbortController()
  const fed = feed(answer, bytes, { ...feeding, signal: feedingEnd.signal })
  try {
    for (let piece = await reader.read(); piece; piece = await reader.read()) yield piece
  } finally {
    feedingEnd.abort()
    await fed
  }
}

type Fed = Feeding & { signal: AbortSignal }

async function feed(answer: StreamedAnswer, bytes: Buffer, { random, wait, signal }: Fed) {
  const wanted = random.isOneIn(20) ? 20 : random.pick([200, 1000, 4000, 100_000])
  const longest = Math.max(wanted, bytes.length / 200)
  for (let at = 0; at < bytes.length && !signal.aborted;) {
    const length = 1 + random.below(longest)
    answer.onBytes(bytes.subarray(at, at + length))
    at += length
    await wait(Math.min(at, bytes.length))
  }
  answer.onEnd()
}

async function guard(
  pieces: AsyncIterable<Piece>,
  { set, rules, categories, formats = upstreamFormats, ...judges }: Judges,
  left: Frame[] = [],
): Promise<Guarded> {
  const findings = createFindings()
  const guarding = {
    formats,
    steadyNow: () => new Date(),
    cancellation: new Cancellation(),
    logProblem: () => {},
    set,
    rules: categories ? addCategories(toEndings(rules, set), categories) : toEndings(rules, set),
    facts: answerFacts,
    prefill: judges.prefill ?? '',
    findings,
    owner: 'org_1',
    scored: judges.scored ?? unscoredAnswer,
    judged: judges.judged ?? unjudgedAnswer,
  }
  let end: string | null = null
  try {
    for await (const piece of guardAnswer(pieces, guarding)) left.push(...piece.frames)
  } catch (error) {
    end = nameOf(error, findings)
  }
  const monitored = findings.matches.filter(({ mode }) => mode === 'monitoring')
  return {
    end,
    frames: left.length,
    bytes: Buffer.concat(left.map(({ source }) => source.bytes)).toString(),
    monitored: monitored.map(({ policy_id, score }) => `${policy_id} ${score}`),
  }
}

const unscoredAnswer: ScoredAnswer = {
  scorers: oneScorer(scoreEach(async () => [])),
  highest: () => new Map(),
}

function nameOf(error: unknown, { triggered }: Findings): string {
  if (!(error instanceof ApiError)) throw error
  if (isUnjudgedError(error) && error.status === 503) {
    return isBeyondLimits(error) ? 'beyond limits' : 'unavailable'
  }
  if (error.code === 'moderation_blocked') return triggered.join()
  if (error.code !== 'policy_blocked' || !error.policy) throw error
  return blockedBy(error.policy.policy_id, error.policy.reason_code === 'RULE_ERROR')
}
