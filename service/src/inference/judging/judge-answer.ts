import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { HideText } from '#inference/redacting/call-redaction.ts'
import {
  ScorerUnavailable,
  type ScoreWindows,
  type WindowVerdict,
} from '#policies/guard/window-queue.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { OpenTexts, RuleOutcome, RuleSet } from '#policies/rules/rule-set.ts'
import type { CategoryScores } from '#policies/rules/score.ts'
import { type Asker, finish, runInTurns } from '#text/steps.ts'

import { hideEach } from './redact-call.ts'
import { type CallJudge, judgeRules } from './verdicts/ask-judge.ts'
import { contextOfAnswer, joinAnswer } from './verdicts/judge-texts.ts'
import type { Findings } from './verdicts/judgement.ts'
import { findUnscored, whyUnscored } from './verdicts/note-matches.ts'
import { watchAnswer } from './watch-texts.ts'

/** The rules in plain language of one answer. */
export type JudgedAnswer = {
  /** Null where no rule is in plain language. */
  readonly judgeWindows: ScoreWindows | null
  /** How many windows are judged together at most, if that matters. */
  readonly windowsTogether?: number
  /** The rules whose gate needs the whole answer. */
  judgeWhole(whole: WholeAnswer): Promise<readonly RuleOutcome[]>
  /** Keeps what the rules that only monitor are to be asked about. */
  watch(whole: WholeAnswer, findings: Findings): Promise<void>
  /** The highest of all windows, by the place of a rule in its set. */
  readonly scores: ReadonlyMap<number, number>
}

type WholeAnswer = {
  texts: readonly string[]
  open: OpenTexts
  scores: CategoryScores
  asker: Asker
}

/**
 * Windows that are sent together are judged side by side. More of them would wait for each other, and the judge has little time
 * for each.
 */
const windowsTogether = 4

/** Where no rule is in plain language. */
export const unjudgedAnswer: JudgedAnswer = {
  judgeWindows: null,
  judgeWhole: async () => [],
  watch: async () => undefined,
  scores: new Map(),
}

type Judging = {
  callJudge: CallJudge
  set: RuleSet
  rules: AnswerRules
  /** As it is sent. */
  request: RequestTexts
  hide: HideText | null
}

export function judgeAnswer({ callJudge, set, rules, request, hide }: Judging) {
  const isOpen = new Set(rules.rules.flatMap(({ index, formula }) => (formula ? index : [])))
  const atoms = new Map(
    rules.scores.flatMap((atom, number) =>
      atom.kind === 'judged' && isOpen.has(atom.rule) ? [[atom.rule, number] as const] : [],
    ),
  )
  const atEnd = new Set(
    rules.rules.flatMap(({ index, formula, isEnforcing }) =>
      !formula && isEnforcing && set.rules[index]?.rule.needs.judge ? index : [],
    ),
  )
  const scores = new Map<number, number>()
  const context = contextOfAnswer(request)
  const contentsOf = (text: string) => [{ direction: 'response' as const, context, text }]

  const judgeWindows: ScoreWindows = (windows, signal) =>
    Promise.all(windows.map(({ text }) => judgeWindow(text, signal)))

  async function judgeWindow(text: string, signal: AbortSignal): Promise<WindowVerdict> {
    // A window is short.
    const contents = contentsOf(hide ? finish(hide(text)) : text)
    const asked = { set, indexes: [...atoms.keys()], contents }
    const outcomes = await judgeRules(callJudge, asked, signal)
    for (const { index, score } of outcomes) {
      scores.set(index, Math.max(score, scores.get(index) ?? 0))
    }
    const matched = outcomes.filter(({ isMatch }) => isMatch)
    const hit = matched.flatMap(({ index }) => atoms.get(index) ?? [])
    if (!findUnscored(outcomes, set)) return hit
    const cause = whyUnscored(outcomes)
    return { atoms: hit, error: new ScorerUnavailable('the judge has not answered', { cause }) }
  }

  return {
    scores,
    windowsTogether,
    judgeWindows,
    async judgeWhole({ texts, open, scores: categories, asker }: WholeAnswer) {
      if (atEnd.size === 0) return []
      const gates = await runInTurns(open.gates(categories), asker)
      const relevant = gates.filter(({ index }) => atEnd.has(index))
      if (findUnscored(relevant, set)) return relevant
      const indexes = relevant.filter(({ isMatch }) => isMatch).map(({ index }) => index)
      const whole = joinAnswer(texts)
      const contents = contentsOf(hide ? await runInTurns(hide(whole), asker) : whole)
      return judgeRules(callJudge, { set, indexes, contents }, asker.signal)
    },
    async watch({ texts, open, scores: categories, asker }, findings) {
      if (!set.rules.some(({ mode, rule }) => mode === 'monitoring' && rule.needs.judge)) return
      const gates = await runInTurns(open.gates(categories), asker)
      const sent = hide ? await runInTurns(hideEach(texts, hide), asker) : texts
      watchAnswer({ findings, set, gates }, sent, context)
    },
  } satisfies JudgedAnswer
}
