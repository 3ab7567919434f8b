import { alwaysBlocked } from '#moderation/categories.ts'
import type { EndOutcome } from '#policies/guard/guard-end.ts'
import type { TestRules } from '#policies/guard/testing/enforce-whole.ts'
import type { Random } from '#policies/guard/testing/random-case.ts'
import { answerFacts, patternEngine } from '#policies/guard/testing/rule-set-of.ts'
import { windowsOfWhole } from '#policies/guard/testing/whole-windows.ts'
import type { AnswerRules, WindowAtom } from '#policies/rules/answer-rules.ts'
import { compileRule } from '#policies/rules/rule-program.ts'
import { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'
import { normalise } from '#text/normalise.ts'
import { heldMostBy, judgeGrid, remoteGrid } from '#text/windows/window-grid.ts'

import { literalsOf } from './random-rule-set.ts'

// Rules that ask scorers and judges. Texts say themselves what is thought of them.

const rulesMost = 3
/** Marks of each kind, some of them too low for any rule. */
export const said = [
  ...['hate=0.9', 'hate=0.3', 'illicit=0.9', 'self-harm=0.8', 'sexual/minors=0.97'].map(
    (mark) => `[[cat:${mark}]]`,
  ),
  ...Array.from({ length: rulesMost }, (_, number) => `[[rule:policy${number}=0.9]]`),
  '[[rule:policy0=0.4]]',
  'secret',
  'a secret',
  'friend',
  'k123456',
]

/** How much a text belongs to a category, 0 to 1. */
export const scoreIn = (text: string, category: string) => markIn(text, 'cat', category)
/** How much a text breaks the rule of a policy, 0 to 1. */
export const breachIn = (text: string, policyId: string) => markIn(text, 'rule', policyId)

function markIn(text: string, kind: string, name: string): number {
  const found = text.split(`[[${kind}:${name}=`).slice(1)
  return Math.max(0, ...found.flatMap((rest) => Number(/^(0\.\d+)\]\]/.exec(rest)?.[1] ?? 0)))
}

const plain = 'Nobody may be rude.'
/** Windows decide them. */
const streamed = [
  plain,
  plain,
  `when: text.contains("secret")\n${plain}`,
  `when: score("hate") > 0.5\n${plain}`,
  `when: text.matches("\\\\bk[0-9]{5,8}")\n${plain}`,
  'cel: score("hate") > 0.2 && text.contains("secret")',
  'cel: score("illicit") >= 0.9 || text.matches("\\\\bk[0-9]{5,8}")',
  'cel: score("hate") > 0.5 && score("illicit") > 0.5',
  'cel: score("hate") > 0.2 && text.size() >= 700',
  'cel: text.contains("a secret")',
]

/** What is known of a complete answer. */
type Whole = {
  highest(category: string): number
  says(literal: string): boolean
  breaks(policyId: string): boolean
}
type WholeRule = { rule: string; isMatch: (whole: Whole, policyId: string) => boolean }

/** Only a complete answer decides them, or they monitor. */
const wholeRules: readonly WholeRule[] = [
  {
    rule: 'cel: score("hate") + score("illicit") > 1.1',
    isMatch: ({ highest }) => highest('hate') + highest('illicit') > 1.1,
  },
  {
    rule: 'cel: score("hate") < 0.5 && text.contains("secret")',
    isMatch: ({ highest, says }) => highest('hate') < 0.5 && says('secret'),
  },
  {
    rule: `when: !text.contains("friend")\n${plain}`,
    isMatch: ({ says, breaks }, policyId) => !says('friend') && breaks(policyId),
  },
]
const monitored: readonly WholeRule[] = [
  ...wholeRules.slice(0, 2),
  { rule: 'cel: score("hate") > 0.5', isMatch: ({ highest }) => highest('hate') > 0.5 },
]

export type ScoredSet = {
  set: RuleSet
  /** Without those of the categories. */
  own: AnswerRules
  whole: TestRules
  /** Which monitoring rules match a complete answer, each with its score. */
  matchedBy(texts: readonly string[]): string[]
}

/** One to three rules, together with the categories that are always blocked. */
export function createScoredSet(random: Random): ScoredSet {
  const needsWhole = random.isOneIn(6)
  const matchers = new Map<number, WholeRule['isMatch']>()
  const rules = Array.from({ length: 1 + random.below(rulesMost) }, (_, index) => {
    const isMonitoring = random.isOneIn(5)
    const isWhole = isMonitoring || (needsWhole && random.isOneIn(2))
    const chosen = isWhole ? random.pick(isMonitoring ? monitored : wholeRules) : null
    if (chosen) matchers.set(index, chosen.isMatch)
    return toRule(chosen?.rule ?? random.pick(streamed), index, isMonitoring)
  })
  const set = new RuleSet(rules, patternEngine)
  const own = set.openAnswer(answerFacts)
  const evaluate = (texts: readonly string[]) =>
    [...matchers].map(([index, isMatch]): EndOutcome => {
      return { index, isMatch: isMatch(readWhole(texts), `policy${index}`), isError: false }
    })
  return {
    set,
    own,
    whole: {
      rules: withCategories(own, rules.length),
      literals: literalsOf(set),
      scoreStarts: (number, _channel, text) =>
        windowsOfWhole(text, gridOf(own.scores[number])).flatMap((window) =>
          isHit(own.scores[number] ?? alwaysBlocked[number - own.scores.length], window.text)
            ? [window.start]
            : [],
        ),
      evaluateAtEnd: evaluate,
    },
    matchedBy: (texts) =>
      evaluate(texts).flatMap(({ index, isMatch }) =>
        isMatch && rules[index]?.mode === 'monitoring' ? [`policy${index} 10000`] : [],
      ),
  }
}

/** Of the scorer that is asked about categories, and of the judge. */
const gridOf = (atom: WindowAtom | undefined) =>
  atom?.kind === 'judged' ? judgeGrid : remoteGrid()

/** By the rules themselves, the scorer, and the judge where it is asked. */
const heldBy = ({ hold, scores }: AnswerRules): number[] => [
  ...(typeof hold === 'number' ? [hold] : []),
  heldMostBy(remoteGrid()),
  ...(scores.some(({ kind }) => kind === 'judged') ? [heldMostBy(judgeGrid)] : []),
]

/** The rules, and for each category one more, with numbers after those of the set. */
const withCategories = (own: AnswerRules, ruleCount: number): AnswerRules => ({
  ...own,
  hold: own.hold === 'full' ? 'full' : Math.max(...heldBy(own)),
  rules: [
    ...own.rules,
    ...alwaysBlocked.map((_, number) => ({
      index: ruleCount + number,
      isEnforcing: true,
      isError: false,
      formula: { kind: 'score' as const, atom: own.scores.length + number },
    })),
  ],
})

function toRule(text: string, index: number, isMonitoring: boolean): SetRule {
  const rule = compileRule(text, patternEngine)
  if (typeof rule === 'string') throw new Error(`${text}: ${rule}`)
  const mode = isMonitoring ? 'monitoring' : 'enforcing'
  return { policyId: `policy${index}`, policyName: text, version: 1, mode, threshold: 5000, rule }
}

/** A category stands for the atom of its own rule, which comes after those that rules ask for. */
function isHit(atom: WindowAtom | string | undefined, text: string): boolean {
  if (atom === undefined) throw new Error('There is no such atom.')
  if (typeof atom === 'string') return scoreIn(text, atom) >= 0.5
  if (atom.kind === 'judged') return breachIn(text, `policy${atom.rule}`) >= 0.5
  const score = scoreIn(text, atom.category)
  return atom.isInclusive ? score >= atom.above : score > atom.above
}

function readWhole(texts: readonly string[]): Whole {
  const windows = texts.flatMap((text) => windowsOfWhole(text, remoteGrid()))
  return {
    highest: (category) => Math.max(0, ...windows.map(({ text }) => scoreIn(text, category))),
    says: (literal) => texts.some((text) => normalise(text).text.includes(literal)),
    breaks: (policyId) => breachIn(texts.join('\n\n'), policyId) >= 0.5,
  }
}
