import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'

import { buildTermLists } from './term-lists.ts'

const listsOf = (rules: { allowlist?: string[]; denylist?: string[] }) =>
  finish(buildTermLists(GivenGatewayConfig.parse({ rules }).rules))

const isFound = (term: string, text: string) =>
  finish(listsOf({ denylist: [term] }).find([text])).denylist.length === 1

test.each([
  ['bomb', 'How to build a BOMB?'],
  ['bomb', 'bombastic'],
  ['two words', 'Two\n  Words'],
  ['ﬁsh', 'fish'],
  ['fish', 'ﬁsh'],
  ['fish', 'fi\u200bsh'],
  ['fish', 'ｆｉｓｈ'],
  ['ΟΔΟΣ', 'οδος'],
  ['οδοσ', 'ΟΔΟΣ'],
  ['Straße', 'STRASSE'],
  ['strasse', 'STRAẞE'],
  ['é', 'e\u0301'],
  ['💥', 'boom 💥'],
])('%j is found in %j', (term, text) => {
  expect(isFound(term, text)).toBe(true)
})

test.each([
  ['bomb', 'bom b'],
  ['two words', 'twowords'],
  ['bomb', ''],
  ['e', 'é'],
])('%j is not found in %j', (term, text) => {
  expect(isFound(term, text)).toBe(false)
})

test('all terms that are in a text are told, each once, as they stand in their list', () => {
  const lists = listsOf({ allowlist: ['Fish', 'bird', 'fish'], denylist: ['fish', 'IS'] })
  expect(finish(lists.find(['fish is fish']))).toEqual({
    allowlist: ['Fish', 'fish'],
    denylist: ['fish', 'IS'],
  })
  expect(finish(lists.find(['bird']))).toEqual({ allowlist: ['bird'], denylist: [] })
  expect(finish(lists.find(['']))).toEqual({ allowlist: [], denylist: [] })
})

test('every term that can be saved is found in a text that has it, and in no empty one', () => {
  const term = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 })
  const isSavable = (text: string) =>
    GivenGatewayConfig.safeParse({ rules: { denylist: [text] } }).success
  fc.assert(
    fc.property(term.filter(isSavable), (text) => {
      expect([isFound(text, text), isFound(text, ''), isFound(text, ' \u200b ')]).toEqual([
        true,
        false,
        false,
      ])
    }),
    { numRuns: 1000 },
  )
})

test('a thousand long terms are looked for in a long text at once', () => {
  const denylist = Array.from({ length: 1000 }, (_, index) => `${'a'.repeat(190)}${index}`)
  const lists = listsOf({ denylist })
  const startedMs = performance.now()
  expect(finish(lists.find(['a'.repeat(20_000)])).denylist).toEqual([])
  expect(performance.now() - startedMs).toBeLessThan(500)
})
