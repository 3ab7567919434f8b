import { describe, expect, test } from 'vitest'

import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'
import { joinMessages, joinParts, type Passage } from '#text/passage.ts'

import type { CallFacts } from './facts.ts'

const facts: CallFacts = {
  ...answerFacts,
  direction: 'request',
  userText: ['what users say'],
  tools: ['a tool'],
  history: ['an earlier answer'],
}

const isMatch = (rule: string, ...passages: Passage[]) =>
  ruleSetOf([rule]).evaluate(facts, passages)[0]?.isMatch

describe('a text in parts', () => {
  const parts = joinParts(['The secret w', 'ord'])

  test.each([
    ['text.contains("secret word")', true],
    ['text.contains("secret w ord")', true],
    ['text.matches("^ord")', true], // in its part
    ['text.size() == 15', true],
    ['text.size() > 15', false],
  ])('%s: %s', (rule, expected) => {
    expect(isMatch(rule, parts)).toBe(expected)
  })

  test('a value over a seam counts once, however it is read', () => {
    const card = joinParts(['4111 1111 ', '1111 1111'])
    expect(isMatch('pii("CARD") == 1', card)).toBe(true)
    const twice = joinMessages([['a@example.com'], ['b@exam', 'ple.com']])
    expect(isMatch('pii("EMAIL") == 2', twice)).toBe(true)
  })

  test('what repeats words of others has neither a size nor personal data', () => {
    const words = { ...joinParts(['4111 1111 1111 1111']), isRepeated: true }
    expect(isMatch('pii("CARD") == 0 && text.size() == 0', words)).toBe(true)
    expect(isMatch('text.contains("1111 1111")', words)).toBe(true)
  })
})

test.each(['{"t":"Projet \\u00c9clair"}', '{"t":"{\\"u\\":\\"Projet\\\\nÉclair\\"}"}'])(
  'escapes hide nothing: %s',
  (text) => {
    expect(isMatch('text.contains("Projet Éclair")', joinParts([text]))).toBe(true)
  },
)

test.each([
  'user_text.contains("users say")',
  'tools.contains("tool")',
  'history.contains("earlier")',
  '["a"].exists(tools, tools == "a")', // as it could be written before there were tools
  '["ab"].exists(history, history.contains("b"))',
])('%s is true', (rule) => {
  expect(isMatch(rule, joinParts(['x']))).toBe(true)
})
