import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'

import { buildTermLists } from './term-lists.ts'

const listsOf = (rules: { allowlist?: string[]; denylist?: string[] }) =>
  finish(buildTermLists(GivenGatewayConfig.parse({ rules }).rules))

const locate = (text: string, denylist: string[], allowlist: string[] = []) =>
  finish(listsOf({ denylist, allowlist }).locate(text))

test.each([
  ['bomb', 'A BOMB.', 'BOMB'],
  ['two words', 'Say two\n  Words!', 'two\n  Words'],
  ['fish', 'A ﬁsh.', 'ﬁsh'],
  ['f', 'A ﬁsh.', 'ﬁ'],
  ['fish', 'A fi\u200bsh.', 'fi\u200bsh'],
  ['fish', 'A ｆｉｓｈ.', 'ｆｉｓｈ'],
  ['strasse', 'ẞ: die Straße.', 'Straße'],
  ['sa', 'ßa', 'ßa'],
  ['é', 'Un caf\u0065\u0301.', '\u0065\u0301'],
  ['💥', 'boom 💥!', '💥'],
])('the place of %j in %j is that of %j', (term, text, found) => {
  const start = text.indexOf(found)
  expect(locate(text, [term])).toEqual([{ start, end: start + found.length, pattern: term }])
})

test('terms of both lists are told by their place, and of the same in two cases the first', () => {
  expect(locate('a gun, a Gun', ['Gun', 'gun', 'a'], ['gun, a'])).toEqual([
    { start: 0, end: 1, pattern: 'a' },
    { start: 2, end: 5, pattern: 'Gun' },
    { start: 2, end: 8, pattern: 'gun, a' },
    { start: 7, end: 8, pattern: 'a' },
    { start: 9, end: 12, pattern: 'Gun' },
  ])
  expect(locate('nothing', ['gun'])).toEqual([])
  expect(locate('', ['gun'])).toEqual([])
  expect(locate('a gun', [])).toEqual([])
})

test('the first 50 are told, also those that end after others have been found', () => {
  const long = `${'ab'.repeat(99)}!`
  const text = `${long} ${'ab'.repeat(5000)}`
  const found = locate(text, ['ab', long])
  expect(found).toHaveLength(50)
  expect(found.slice(0, 3)).toEqual([
    { start: 0, end: 2, pattern: 'ab' },
    { start: 0, end: long.length, pattern: long },
    { start: 2, end: 4, pattern: 'ab' },
  ])
  expect(found.at(-1)).toEqual({ start: 96, end: 98, pattern: 'ab' })
})

test('terms have places exactly where they are found, within the text and in order', () => {
  const unit = fc.constantFrom(
    'a',
    'B',
    'ß',
    'S',
    'ﬁ',
    'i',
    ' ',
    '\u200b',
    '\u0301',
    'e',
    '💥',
    'İ',
  )
  const texts = fc.string({ unit, maxLength: 600 })
  const terms = fc.array(fc.string({ unit, minLength: 1, maxLength: 4 }), { maxLength: 6 })
  const isSavable = (denylist: string[]) =>
    GivenGatewayConfig.safeParse({ rules: { denylist } }).success
  fc.assert(
    fc.property(texts, terms.filter(isSavable), (text, denylist) => {
      const lists = listsOf({ denylist })
      const found = finish(lists.locate(text))
      expect(found.length > 0).toBe(finish(lists.find([text])).denylist.length > 0)
      for (const [index, { start, end }] of found.entries()) {
        expect([start >= (found[index - 1]?.start ?? 0), start < end, end <= text.length]).toEqual([
          true,
          true,
          true,
        ])
      }
    }),
  )
})
