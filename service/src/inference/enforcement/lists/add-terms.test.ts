import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { compileGateway } from '#gateway-config/compile-gateway.ts'
import { ConfiguredCall } from '#inference/configured/configured-call.ts'
import type { Ending } from '#inference/enforcement/check.ts'
import { finish } from '#platform/steps/steps.ts'
import { AnswerGuard } from '#policies/guard/answer-guard.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import { LiteralSet } from '#text/literal-set.ts'

import { addTerms } from './configuration.ts'

const noRules: AnswerRules<Ending> = {
  patterns: { hits: () => [], find: () => null },
  patternCount: 0,
  literals: new LiteralSet([]),
  scores: [],
  entities: [],
  hold: 'none',
  patternHold: 0,
  rules: [],
}

function configure(denylist: string[], arm: 'enforced' | 'shadow' = 'enforced') {
  const config = GivenGatewayConfig.parse({ rules: { denylist } })
  const stored = {
    revision: 1,
    sha256: '',
    samplingRevision: 1,
    samplingKey: '',
    config,
    rolledBackUntil: null,
  }
  return new ConfiguredCall(finish(compileGateway(stored)), arm, { addHeaders: () => undefined })
}

/** How much of an answer leaves that comes in these pieces, and whether it is ended. */
function guard(denylist: string[], pieces: readonly string[]) {
  const rules = addTerms(noRules, configure(denylist).endingTerms)
  const answer = new AnswerGuard(rules, { now: () => 0, evaluateAtEnd: async () => [] })
  const left: number[] = []
  for (const piece of pieces) {
    answer.add('text', piece)
    left.push(answer.clearedOf('text'))
  }
  answer.end()
  return { left, cleared: answer.clearedOf('text'), ended: answer.ended, hold: rules.hold }
}

test('an answer ends where a term begins, whatever its case', () => {
  const { cleared, ended } = guard(['Straße', 'bomb'], ['Take the STR', 'ASSE', ' now'])
  expect([cleared, ended]).toEqual([9, expect.objectContaining({ kind: 'block', cut: 9 })])
})

test('what may become a term is held back, and leaves when it does not', () => {
  const { left, cleared, ended, hold } = guard(['bomber'], ['A bomb', 'a', '.'])
  expect([left, cleared, ended, hold]).toEqual([[2, 2, 7], 8, null, 5])
})

test('without a denylist, and where it is not enforced, nothing is looked for', () => {
  expect(addTerms(noRules, configure([]).endingTerms)).toBe(noRules)
  expect(addTerms(noRules, configure(['bomb'], 'shadow').endingTerms)).toBe(noRules)
})

test('the cut does not depend on the pieces, and nothing from there on leaves', () => {
  const characters = fc.constantFrom(
    'a',
    'B',
    'ß',
    's',
    'S',
    '\u200b',
    ' ',
    'e\u0301',
    'ﬁ',
    'f',
    'i',
  )
  const piece = fc.array(characters, { maxLength: 6 }).map((each) => each.join(''))
  fc.assert(
    fc.property(
      fc.array(
        piece.filter((term) => /[^\s\u200b]/.test(term)),
        { minLength: 1, maxLength: 4 },
      ),
      fc.array(piece, { maxLength: 8 }),
      (terms, pieces) => {
        const whole = guard(terms, [pieces.join('')])
        const cut = guard(terms, pieces)
        expect([cut.cleared, cut.ended]).toEqual([whole.cleared, whole.ended])
        for (const length of cut.left) expect(length).toBeLessThanOrEqual(whole.cleared)
        const { denylist } = finish(configure(terms).gateway.terms.find([pieces.join('')]))
        const isFound = denylist.length > 0
        expect(whole.ended !== null).toBe(isFound)
      },
    ),
  )
})
