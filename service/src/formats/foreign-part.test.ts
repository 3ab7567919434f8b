import { expect, test } from 'vitest'

import { addForeign, foreignMembers } from './foreign-part.ts'

test('only members that say something are foreign', () => {
  const object = { known: 'a', list: [], nothing: null, empty: {}, none: '', count: 7, is: true }
  expect(foreignMembers(object, new Set(['known']))).toEqual([])
  expect(foreignMembers({ ...object, more: ['x'] }, new Set(['known']))).toEqual([
    { type: 'foreign', text: '{"more":["x"]}' },
  ])
  expect(foreignMembers({ ...object, 'a sentence': true }, new Set(['known']))).toEqual([
    { type: 'foreign', text: '{"a sentence":true}' },
  ])
})

test('what belongs to no message stands in the first one, which is made where there is none', () => {
  const foreign = { type: 'foreign' as const, text: '{}' }
  const hi = { role: 'user' as const, parts: [{ type: 'text' as const, text: 'Hi' }] }
  expect(addForeign([hi, hi], [foreign])).toEqual([{ ...hi, parts: [...hi.parts, foreign] }, hi])
  expect(addForeign([], [foreign])).toEqual([{ role: 'user', parts: [foreign] }])
  expect(addForeign([], [])).toEqual([])
})
