import type { Said } from '#formats/texts/said.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import type { Findings } from './findings.ts'
import { noteFound } from './note-matches.ts'

/** Up to this length it is worth reading the request once more, part by part. */
const partsMost = 200
const lengthMost = 256 * 1024

/** Notes which parts of a request contain what was found in the whole of it. */
export async function locate(
  findings: Findings,
  texts: readonly Said[],
  isIn: (said: Said) => Promise<boolean>,
) {
  const length = texts.reduce(
    (sum, { parts }) => parts.reduce((all, each) => all + each.length, sum),
    0,
  )
  if (texts.length > partsMost || length > lengthMost) return
  for (const said of texts) {
    const isThere = texts.length === 1 || (await isIn(said))
    if (isThere)
      noteFound(findings, { direction: 'request', part: said.part, message: said.message })
  }
}

type Located = {
  findings: Findings
  set: RuleSet
  facts: CallFacts
  texts: readonly Said[]
  asker: Asker
}

/** The same for rules that have matched. A rule that needs several parts together is found in none of them. */
export async function locateMatches(
  { findings, set, facts, texts, asker }: Located,
  matching: ReadonlySet<SetRule>,
) {
  await locate(findings, texts, async (said) => {
    const outcomes = await runInTurns(set.openTexts(facts, [said]).exact(), asker)
    return outcomes.some(({ rule, isMatch }) => isMatch && matching.has(rule))
  })
}
