import { setImmediate } from 'node:timers/promises'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, test } from 'vitest'

import { RuleSet } from '#policies/rules/rule-set.ts'

import { AnswerGuard } from './answer-guard.ts'
import { createChoices, createText, type Random } from './testing/random-case.ts'
import { answerFacts, numbered, patternEngine, ruleSetOf } from './testing/rule-set-of.ts'

const sets = sizeOf({ usual: 60, long: 2000, variable: 'GUARD_RULE_SETS' })
const seed = Number(process.env['GUARD_SEED'] ?? Date.now() % 2 ** 31)

const conditions = [
  'text.matches("\\\\bab\\\\b")',
  'text.matches("a.{0,6}c")',
  'text.matches("(?i)ABC?d")',
  'text.matches("^[a-c]{3}")',
  'text.matches("\\\\p{L}{3} 😀")',
  'text.matches("c\\\\s{1,3}a")',
  'text.contains("cab")',
  'text.containsAny(["fi", "é", "😀a"])',
  'pii("EMAIL") > 0',
  'pii("EMAIL") >= 2',
  '0 < pii("CARD")',
  'text.size() >= 30',
  'text.size() > 55',
  'model == "some-model"',
  'model == "another"',
  'stream',
  'system.contains("kind")',
  '1 / (input_tokens - 100) > 0',
]

/** Only the whole answer can decide them. */
const wholeConditions = [
  'text.matches("(?m)^b$")',
  'text.matches("x.*a")',
  'text.size() < 10',
  '!text.contains("a")',
  'pii("EMAIL") == 1',
  'pii("EMAIL") + pii("CARD") >= 2',
  '(text.contains("a") ? 0.6 : 0.2) > 0.5',
]

function createExpression(random: Random, depth: number): string {
  if (random.isOneIn(15)) return random.pick(wholeConditions)
  if (depth === 0 || random.isOneIn(3)) return random.pick(conditions)
  const operator = random.pick(['&&', '&&', '||'])
  return `(${createExpression(random, depth - 1)} ${operator} ${createExpression(random, depth - 1)})`
}

const patience = { timeout: 60_000 + sets * 500 }

test(
  `a guard blocks exactly what the rules match in the whole answer (${patternEngine.name})`,
  patience,
  async () => {
    let [blocked, count, streamed] = [0, 0, 0]
    for (let number = 0; number < sets; number++) {
      const random = createChoices(seed + number)
      const expressions = Array.from({ length: 1 + random.below(3) }, () =>
        createExpression(random, 2),
      )
      const set = ruleSetOf(expressions)
      const rules = set.openAnswer(answerFacts)
      if (rules.hold !== 'full') streamed++
      for (let answer = 0; answer < 40; answer++) {
        const texts = Array.from({ length: random.below(3) }, () => createText(random))
        const guard = new AnswerGuard(rules, {
          now: () => 0,
          evaluateAtEnd: async () => set.evaluate(answerFacts, texts),
        })
        feed(guard, texts, random)
        if (guard.isWaiting) await setImmediate()
        const outcomes = set.evaluate(answerFacts, texts)
        const matched = outcomes.filter(({ isMatch }) => isMatch).map(({ index }) => index)
        const found = guard.ended?.kind === 'block' ? guard.ended.ending.index : null
        const isRight = found === null ? matched.length === 0 : matched.includes(found)
        expect({
          isRight,
          seed: seed + number,
          expressions,
          texts,
          ended: guard.ended,
        }).toMatchObject({ isRight: true })
        count++
        if (found !== null) blocked++
      }
    }
    console.log(
      `guard: ${count} answers from seed ${seed}, ${blocked} blocked, ${streamed} of ${sets} sets streamed`,
    )
    expect(Math.min(blocked, count - blocked)).toBeGreaterThan(count / 20)
  },
)

test('what a formula says is false is false as an expression, too', patience, () => {
  let [falseCount, errors] = [0, 0]
  for (let number = 0; number < sets * 10; number++) {
    const random = createChoices(seed + number)
    const set = ruleSetOf([createExpression(random, 3)])
    const rules = set.rules.map((each) => ({ ...each, rule: { ...each.rule, formula: null } }))
    const evaluated = new RuleSet(rules, patternEngine)
    for (let text = 0; text < 10; text++) {
      const texts = Array.from({ length: random.below(3) }, () => createText(random))
      const expected = numbered(evaluated.evaluate(answerFacts, texts))
      expect(numbered(set.evaluate(answerFacts, texts)), `seed ${seed + number}`).toEqual(expected)
      if (expected[0]?.isMatch === false) falseCount++
      if (expected[0]?.isError) errors++
    }
  }
  expect(Math.min(falseCount, errors)).toBeGreaterThan(sets)
})

function feed(guard: AnswerGuard, texts: readonly string[], random: Random) {
  for (const [number, text] of texts.entries()) {
    const channel = String(number)
    guard.add(channel, '')
    for (let at = 0; at < text.length;) {
      const length = 1 + random.below(6)
      guard.add(channel, text.slice(at, at + length))
      at += length
    }
    if (random.isOneIn(2)) guard.endChannel(channel)
  }
  guard.end()
}
