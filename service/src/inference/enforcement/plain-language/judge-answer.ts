import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { Findings } from '#inference/enforcement/findings.ts'
import { findUnscored, whyUnscored } from '#inference/enforcement/note-matches.ts'
import type { HideText } from '#inference/enforcement/redaction/call-redaction.ts'
import { hideEach } from '#inference/enforcement/redaction/redact-call.ts'
import type { RuleEnding } from '#inference/enforcement/rules/rule-endings.ts'
import { type Asker, finish, runInTurns } from '#platform/steps/steps.ts'
import {
  ScorerUnavailable,
  type ScoreWindows,
  type WindowScorer,
  type WindowVerdict,
} from '#policies/guard/window-queue.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { OpenTexts, RuleOutcome, RuleSet } from '#policies/rules/rule-set.ts'
import type { ScoreMap } from '#policies/rules/score.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'
import { judgeGrid } from '#text/windows/window-grid.ts'

import { type CallJudge, judgeRules } from './ask-judge.ts'
import { contextOfAnswer, joinAnswer } from './judge-texts.ts'
import { watchAnswer } from './watch-texts.ts'

/** The plain-language rules of one answer. */
export type JudgedAnswer = {
  /** Null where no rule is in plain language, or none can be decided before the answer is over. */
  readonly scorer: WindowScorer | null
  /** The rules whose gate needs the whole answer. */
  judgeWhole(whole: WholeAnswer): Promise<readonly RuleOutcome[]>
  /** Keeps the texts about which the judge will be asked because of monitoring rules. */
  watch(whole: WholeAnswer, findings: Findings): Promise<void>
  /** The highest score of each rule in all windows. */
  readonly scores: ReadonlyMap<SetRule, number>
}

type WholeAnswer = {
  texts: readonly string[]
  open: OpenTexts
  scores: ScoreMap
  asker: Asker
}

/**
 * Windows that are sent together are judged concurrently. More of them would have to wait for each other, and the judge has
 * little time for each.
 */
const windowsTogether = 4

/** For answers to which no plain-language rule applies. */
export const unjudgedAnswer: JudgedAnswer = {
  scorer: null,
  judgeWhole: async () => [],
  watch: async () => undefined,
  scores: new Map(),
}

type Judging = {
  callJudge: CallJudge
  set: RuleSet
  rules: AnswerRules<RuleEnding>
  /** The request as it is sent. */
  request: RequestTexts
  hide: HideText | null
}

export function judgeAnswer({ callJudge, set, rules, request, hide }: Judging) {
  const atoms = new Map(
    rules.scores.flatMap((atom, number) =>
      atom.kind === 'judged' ? [[atom.rule, number] as const] : [],
    ),
  )
  const judgedRules = rules.rules.filter(
    ({ isEnforcing, rule }) => isEnforcing && rule.rule.needs.judge,
  )
  const inWindows = judgedRules.filter(({ index, formula }) => formula && atoms.has(index))
  const atEnd = new Set(judgedRules.filter(({ formula }) => !formula).map(({ rule }) => rule))
  const scores = new Map<SetRule, number>()
  const context = contextOfAnswer(request)
  const contentsOf = (text: string) => [{ direction: 'response' as const, context, text }]

  const judgeWindows: ScoreWindows = (windows, signal) =>
    Promise.all(windows.map(({ text }) => judgeWindow(text, signal)))

  async function judgeWindow(text: string, signal: AbortSignal): Promise<WindowVerdict> {
    // A window is short, so this need not run in turns.
    const contents = contentsOf(hide ? finish(hide(text)) : text)
    const outcomes = await judgeRules(callJudge, { rules: inWindows, contents }, signal)
    for (const { rule, score } of outcomes) {
      scores.set(rule, Math.max(score, scores.get(rule) ?? 0))
    }
    const matched = outcomes.filter(({ isMatch }) => isMatch)
    const hit = matched.flatMap(({ index }) => atoms.get(index) ?? [])
    if (!findUnscored(outcomes)) return hit
    const cause = whyUnscored(outcomes)
    return { atoms: hit, error: new ScorerUnavailable('the judge has not answered', { cause }) }
  }

  return {
    scores,
    scorer:
      inWindows.length > 0
        ? { grid: judgeGrid, scoreWindows: judgeWindows, windowsTogether }
        : null,
    async judgeWhole({ texts, open, scores: categories, asker }: WholeAnswer) {
      if (atEnd.size === 0) return []
      const gates = await runInTurns(open.gates(categories), asker)
      const relevant = gates.filter(({ rule }) => atEnd.has(rule))
      if (findUnscored(relevant)) return relevant
      const asked = relevant.filter(({ isMatch }) => isMatch)
      const whole = joinAnswer(texts)
      const contents = contentsOf(hide ? await runInTurns(hide(whole), asker) : whole)
      return judgeRules(callJudge, { rules: asked, contents }, asker.signal)
    },
    async watch({ texts, open, scores: categories, asker }, findings) {
      if (!set.rules.some(({ mode, rule }) => mode === 'monitoring' && rule.needs.judge)) return
      const gates = await runInTurns(open.gates(categories), asker)
      const sent = hide ? await runInTurns(hideEach(texts, hide), asker) : texts
      watchAnswer({ findings, gates }, sent, context)
    },
  } satisfies JudgedAnswer
}
