import { readRequestTexts } from '#formats/texts/request-texts.ts'
import { emptyTurn } from '#formats/turn.ts'
import { createFindings } from '#inference/enforcement/findings.ts'
import { scoreAnswer } from '#inference/enforcement/moderation/score-answer.ts'
import { judgeAnswer } from '#inference/enforcement/plain-language/judge-answer.ts'
import { toEndings } from '#inference/enforcement/rules/rule-endings.ts'
import { alwaysBlocked, categories, type Category } from '#moderation/categories.ts'
import type { Moderation } from '#moderation/create-scorers.ts'
import { type Judge, JudgeFailure } from '#moderation/judge/judge.ts'
import { openModeration } from '#moderation/moderate.ts'
import { noModeration } from '#moderation/read-moderation.ts'
import { ScorerFailure, type Segment } from '#moderation/scorer.ts'
import { createMetrics } from '#platform/metrics.ts'
import { finish } from '#platform/steps/steps.ts'
import type { Random } from '#policies/guard/testing/random-case.ts'
import type { ScoreWindows, WindowScorer } from '#policies/guard/window-queue.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'
import { remoteGrid } from '#text/windows/window-grid.ts'

import { breachIn, scoreIn } from './scored-rule-set.ts'
import { sleep } from './virtual-time.ts'

/** How long a complete window may wait for its verdict. */
const waitMostMs = 3000

const scorerProblems = ['unreachable', 'timeout', 'busy', 'error', 'malformed', 'paused'] as const
const judgeProblems = ['unavailable', 'throttled', 'late', 'no_verdict', 'misconfigured'] as const

type Script = { random: Random; canFail: boolean }

/** When a model answers, and whether it does. */
function createReplies({ random, canFail }: Script) {
  const longestMs = random.isOneIn(30) ? 2 * waitMostMs : random.pick([1, 40, 300, 800])
  let hasFailed = false
  return {
    hasFailed: () => hasFailed,
    /** False: it fails. */
    async wait(): Promise<boolean> {
      await sleep(random.below(longestMs))
      return !(canFail && random.isOneIn(8))
    },
    noteFailure() {
      hasFailed = true
    },
  }
}

const covers: ReadonlySet<Category> = new Set(categories)
const metrics = createMetrics()

function scriptModeration(replies: ReturnType<typeof createReplies>, random: Random): Moderation {
  return {
    settings: { ...noModeration, acceptsLocalOnly: false },
    covers,
    grid: remoteGrid(),
    findKnown: () => undefined,
    pausing: () => [],
    async score(segments, wanted) {
      const nothing = { scores: {}, reached: [], hasUnreadImage: false }
      if (!(await replies.wait())) {
        replies.noteFailure()
        const failure = new ScorerFailure(random.pick(scorerProblems), 'It failed.')
        const failed = [{ name: 'scripted', covers, failure }]
        return { segments: segments.map(() => nothing), unscored: wanted, failed }
      }
      const scored = segments.map(({ text }) => {
        const scores = Object.fromEntries(
          [...wanted].map((each) => [each, scoreIn(text, each) * 1e4]),
        )
        const reached = [...wanted].filter((each) => scoreIn(text, each) >= 0.5)
        return { ...nothing, scores, reached }
      })
      return { segments: scored, unscored: new Set(), failed: [] }
    },
  }
}

const scriptJudge = (replies: ReturnType<typeof createReplies>, random: Random): Judge => ({
  id: 'scripted',
  calibrationVersion: 'none',
  isPausing: () => false,
  async judge(rules, { text }) {
    const scores = rules.map(({ policyId }) => [policyId, breachIn(text, policyId) * 1e4] as const)
    if (await replies.wait()) return new Map(scores)
    // The judge's verdict on some rules is known nevertheless.
    const atLeast = new Map(scores.filter(() => random.isOneIn(2)))
    // Where all of them are known to match, nothing is missing.
    if (rules.some(({ policyId }) => (atLeast.get(policyId) ?? 0) < 5000)) replies.noteFailure()
    throw new JudgeFailure(random.pick(judgeProblems), 'It failed.', { atLeast })
  },
})

/** It finds nothing, as it mostly would. */
const local = {
  score: async (segments: readonly Segment[]) => segments.map(() => ({})),
  scoreWindow: () => ({}),
}

/** Questions that were asked about windows. */
class Questions {
  readonly #open = new Set<{ sinceMs: number }>()
  #longestMs = 0
  #signal: AbortSignal | undefined

  /** The answer is over, so no caller waits for them any more. */
  get isGivenUp(): boolean {
    return this.#signal?.aborted ?? false
  }

  get isOpen(): boolean {
    return this.#open.size > 0
  }

  /** The longest that one of them has waited so far. */
  get longestMs(): number {
    return Math.max(this.#longestMs, ...[...this.#open].map((each) => Date.now() - each.sinceMs))
  }

  watched = (scorer: WindowScorer): WindowScorer => ({
    ...scorer,
    scoreWindows: this.#watch(scorer.scoreWindows),
  })

  #watch =
    (ask: ScoreWindows): ScoreWindows =>
    async (windows, signal) => {
      const question = { sinceMs: Date.now() }
      this.#open.add(question)
      this.#signal = signal
      const isOver = () => {
        if (!this.#open.delete(question)) return
        this.#longestMs = Math.max(this.#longestMs, Date.now() - question.sinceMs)
      }
      signal.addEventListener('abort', isOver, { once: true })
      try {
        return await ask(windows, signal)
      } finally {
        isOver()
      }
    }
}

const request = finish(
  readRequestTexts({
    ...emptyTurn,
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'A question.' }] }],
  }),
)

/** A scorer and a judge as one answer meets them: each reply comes after a time of its own, or is a failure. */
export function openScriptedModels(
  script: Script,
  { set, own }: { set: RuleSet; own: AnswerRules },
) {
  const { random } = script
  const [scorer, judge] = [createReplies(script), createReplies(script)]
  const questions = new Questions()
  const read = new Set(categories.filter((each) => set.categories.has(each)))
  const scored = scoreAnswer({
    checks: openModeration({
      moderation: scriptModeration(scorer, random),
      local,
      blocking: alwaysBlocked,
      read,
      organizationId: 'org_1',
    }),
    blocking: alwaysBlocked,
    atoms: own.scores,
    read,
    findings: createFindings(),
    hide: null,
    metrics,
  })
  const callJudge = {
    judge: scriptJudge(judge, random),
    onError: 'refuse' as const,
    organizationId: 'org_1',
    onDegraded() {},
  }
  const judged = judgeAnswer({ callJudge, set, rules: toEndings(own, set), request, hide: null })
  return {
    scored: { ...scored, scorers: scored.scorers.map((each) => questions.watched(each)) },
    judged: { ...judged, scorer: judged.scorer && questions.watched(judged.scorer) },
    questions,
    /** Whether a model has failed, or a window was waited for as long as it may be. */
    mayFail: () => scorer.hasFailed() || judge.hasFailed() || questions.longestMs >= waitMostMs,
    hasWaitedTooLong: () => questions.longestMs > waitMostMs,
  }
}
export type ScriptedModels = ReturnType<typeof openScriptedModels>
