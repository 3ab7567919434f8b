import type { Asker } from '#platform/steps/steps.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import { compileRule } from '#policies/rules/rule-program.ts'
import { type RuleOutcome, RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'

/** The one that the service uses here. */
export const patternEngine = loadPatternEngine()

export const answerFacts: CallFacts = {
  direction: 'response',
  model: 'some-model',
  projectId: 'proj_1',
  endpoint: 'messages',
  role: 'user',
  isStreamed: true,
  inputTokens: 100,
  categories: [],
  userText: ['a question'],
  lastMessage: ['a question'],
  tools: [],
  history: [],
  system: ['Be kind.'],
}

export const someAsker: Asker = { owner: 'org_1', signal: new AbortController().signal }

/** Enforcing rules, compiled from their texts. */
export function ruleSetOf(expressions: readonly string[], engine = patternEngine): RuleSet {
  const rules = expressions.map((expression): SetRule => {
    const rule = compileRule(`cel: ${expression}`, engine)
    if (typeof rule === 'string') throw new Error(`${expression}: ${rule}`)
    const policy = { policyId: 'p', policyName: 'P', version: 1 }
    return { ...policy, mode: 'enforcing', threshold: 5000, rule }
  })
  return new RuleSet(rules, engine)
}

/** Outcomes with the numbers of their rules, and not the rules themselves. */
export const numbered = (outcomes: readonly RuleOutcome[]) =>
  outcomes.map(({ rule: _, ...outcome }) => outcome)
