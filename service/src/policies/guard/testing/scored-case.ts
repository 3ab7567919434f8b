import type { AnswerFormula } from '#policies/rules/answer-rules.ts'
import { fineGrid, remoteGrid } from '#text/windows/window-grid.ts'

import { answerRulesOf } from './answer-rules-of.ts'
import type { TestRules } from './enforce-whole.ts'
import type { Random } from './random-case.ts'
import { windowsOfWhole } from './whole-windows.ts'

// Texts that seldom say something, so that most windows of an answer pass, and rules that ask for scores of them.

/** A text hits a score atom where it has the atom's mark. */
const marks = ['hateful', 'wicked thing']
const literals = ['secret', 'a secret']
export const hitsOf = (text: string) =>
  [...marks.keys()].filter((atom) => text.includes(marks[atom]!))

/** Each atom is asked of a scorer of its own. */
export const grids = [fineGrid, remoteGrid()]
const gridOf = (atom: number) => grids[atom]!

/** Also characters that combine, are removed, or are half of a pair; and words without an end of a window in them. */
const words = [
  'some',
  'words',
  'e\u0301',
  '😀😀',
  'x'.repeat(40),
  '\u200b',
  'a',
  'k1234',
  'longer',
  '  ',
]

type Wish = { most: number; rarity: number; rare?: readonly string[] }

/** Up to `most` words, one in `rarity` of which is a rare one. */
export function createScoredText(random: Random, wish: Wish): string {
  const { most, rarity, rare = [...marks, ...literals] } = wish
  const all = Array.from({ length: random.below(most) }, () =>
    random.pick(random.isOneIn(rarity) ? rare : words),
  )
  return all.join(random.pick([' ', ' ', '\n', '']))
}

export function createScoredRules(random: Random): TestRules {
  const score = (): AnswerFormula => ({ kind: 'score', atom: random.below(2) })
  const atom = (): AnswerFormula =>
    random.pick<AnswerFormula>([
      score(),
      { kind: 'literal', literal: random.below(2) },
      { kind: 'pattern', pattern: 0 },
      { kind: 'size', atLeast: random.below(900) },
    ])
  const formulas = Array.from({ length: 1 + random.below(2) }, (): AnswerFormula => ({
    kind: random.pick(['and', 'or']),
    parts: [atom(), atom()],
  }))
  return {
    rules: answerRulesOf({
      patterns: [['\\bk[0-9]{4,8}', 9]],
      literals,
      formulas: [score(), ...formulas].slice(random.below(2)),
    }),
    literals,
    scoreStarts: (number, _channel, text) =>
      windowsOfWhole(text, gridOf(number)).flatMap((one) =>
        hitsOf(one.text).includes(number) ? [one.start] : [],
      ),
    evaluateAtEnd: () => [],
  }
}
