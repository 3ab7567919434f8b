import type { Random } from '#policies/guard/testing/random-case.ts'
import { patternEngine } from '#policies/guard/testing/rule-set-of.ts'
import type { Outline } from '#policies/rules/formula.ts'
import { compileRule } from '#policies/rules/rule-program.ts'
import { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

const patterns = [
  '\\bab\\b',
  'a.{0,6}c',
  '(?i)ABC?d',
  '^[a-c]{3}',
  '\\p{L}{3} 😀',
  'c\\s{1,3}a',
  'b(?:ab){2,3}',
  '\\Bc\\B',
  '\\b[a-c]{2,4}\\b',
  '^.{2}c',
  '[^\\s].?😀',
  'x[a-z]{2,30}z',
  'q[0-4]',
  '4[0-9]{15}',
]
const conditions = [
  ...patterns.map((pattern) => `text.matches(${JSON.stringify(pattern)})`),
  'text.contains("cab")',
  'text.contains("look")',
  'text.contains("abca")',
  'text.contains("true")',
  'text.containsAny(["fi", "é", "😀a"])',
  'text.containsAny(["bb cc", "zzzz", "가b"])',
  'text.size() >= 60',
  'text.size() > 95',
  '25 <= text.size()',
  'model == "another"',
  '!stream',
  'system.contains("rude")',
]
/** Seldom alone: they match every answer. */
const trueConditions = ['model == "some-model"', 'stream', 'system.contains("kind")', '0.7']
const brokenCondition = '1 / (input_tokens - 100) > 0'
/** Only the whole answer can decide them. */
const wholeConditions = [
  'text.matches("(?m)^b$")',
  'text.matches("x.*a")',
  'text.size() < 40',
  '!text.contains("a")',
  '!text.matches("[a-f]{2}")',
  '(text.contains("a") ? 0.6 : 0.2) > 0.5',
]
const numbers = [
  'text.contains("cab") ? 0.9 : 0.3',
  'text.size() > 50 ? 6000 : 100',
  'double(text.size()) / 100.0',
  'stream ? 0.4 : 0.9',
]

/** One to four rules, some of which only monitor. */
export function createRuleSet(random: Random): RuleSet {
  const needsWhole = random.isOneIn(5)
  const rules = Array.from({ length: 1 + random.below(4) }, (_, index): SetRule => {
    const expression = createExpression(random, needsWhole)
    const rule = compileRule(`cel: ${expression}`, patternEngine)
    if (typeof rule === 'string') throw new Error(`${expression}: ${rule}`)
    return {
      policyId: `policy${index}`,
      policyName: expression,
      version: 1,
      mode: random.isOneIn(4) ? 'monitoring' : 'enforcing',
      threshold: random.pick([5000, 5000, 3000, 9999]),
      rule,
    }
  })
  return new RuleSet(rules, patternEngine)
}

function createExpression(random: Random, needsWhole: boolean): string {
  if (needsWhole && random.isOneIn(3)) return random.pick(numbers)
  if (random.isOneIn(80)) return random.pick(trueConditions)
  return createCondition(random, { depth: random.below(3), needsWhole })
}

type Wish = { depth: number; needsWhole: boolean }

function createCondition(random: Random, { depth, needsWhole }: Wish): string {
  if (needsWhole && random.isOneIn(4)) return random.pick(wholeConditions)
  if (depth === 0) return random.pick(conditions)
  if (random.isOneIn(10)) {
    const fact = random.pick([...trueConditions.slice(0, 3), brokenCondition])
    return `(${fact} && ${createCondition(random, { depth: depth - 1, needsWhole })})`
  }
  const operator = random.pick(['&&', '&&', '&&', '||'])
  const part = () => createCondition(random, { depth: depth - 1, needsWhole })
  return `(${part()} ${operator} ${part()})`
}

/** The literals of the enforcing rules, by the numbers that the formulas of an answer give them. */
export function literalsOf({ rules }: RuleSet): string[] {
  const outlines = rules.filter(({ mode }) => mode === 'enforcing').map(({ rule }) => rule.outline)
  return [...new Set(outlines.flatMap(literalsIn))]
}

function literalsIn(outline: Outline): string[] {
  if ('parts' in outline) return outline.parts.flatMap(literalsIn)
  return outline.kind === 'atom' && outline.atom.kind === 'literal' ? [outline.atom.text] : []
}
