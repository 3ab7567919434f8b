import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { integerInQuery, listOf, ListQuery, pageOf } from './list.ts'

const limit = integerInQuery(1, 100)

test.each([
  ['1', 1],
  ['20', 20],
  ['100', 100],
  ['007', 7], // digits only, and they mean one number
])('%j is the number %i', (text, number) => {
  expect(limit.parse(text)).toBe(number)
})

test.each([
  [''],
  ['0'],
  ['101'],
  ['-1'],
  ['+1'],
  ['1e1'],
  ['0x10'],
  [' 5'],
  ['5 '],
  ['5\n'],
  ['5.0'],
  ['1,0'],
  ['١'], // a digit elsewhere
  ['NaN'],
  ['Infinity'],
  ['00000000001'],
  ['9'.repeat(400)],
  [5],
  [['5', '6']], // sent twice
  [null],
])('%j is refused', (value) => {
  expect(limit.safeParse(value).success).toBe(false)
})

test('any text is either refused or read as the integer it spells, within the bounds', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9 .+e-]{0,4}$/), (text) => {
      const { data } = limit.safeParse(text)
      const isGood = /^[0-9]+$/.test(text) && Number(text) >= 1 && Number(text) <= 100
      expect(data).toBe(isGood ? Number(text) : undefined)
    }),
  )
})

test('a list without parameters starts at the oldest, twenty at a time', () => {
  expect(ListQuery.parse({})).toEqual({ limit: 20, order: 'asc' })
})

test('unknown query parameters are ignored', () => {
  expect(ListQuery.parse({ limit: '3', order: 'desc', after: 'x', colour: 'red' })).toEqual({
    limit: 3,
    order: 'desc',
    after: 'x',
  })
})

test.each([{ order: 'ASC' }, { order: '' }, { after: '' }, { after: 'x'.repeat(201) }])(
  'a list refuses %j',
  (query) => {
    expect(ListQuery.safeParse(query).success).toBe(false)
  },
)

const rows = (count: number) => Array.from({ length: count }, (_, index) => ({ id: `i${index}` }))

test('a page says whether there is more, and leaves out the extra row that shows it', () => {
  expect(pageOf(rows(3), 2)).toEqual({
    object: 'list',
    data: [{ id: 'i0' }, { id: 'i1' }],
    has_more: true,
    first_id: 'i0',
    last_id: 'i1',
  })
})

test('a page that is exactly full is the last one', () => {
  expect(pageOf(rows(2), 2)).toMatchObject({ data: rows(2), has_more: false, last_id: 'i1' })
})

test('an empty page has null for both ids', () => {
  expect(pageOf([], 2)).toEqual({
    object: 'list',
    data: [],
    has_more: false,
    first_id: null,
    last_id: null,
  })
})

test('every page fits the envelope', () => {
  const envelope = listOf(z.object({ id: z.string() }))
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 1, max: 10 }), (count, size) => {
      const page = pageOf(rows(count), size)
      expect(envelope.parse(page)).toEqual(page)
      expect(page.data.length).toBe(Math.min(count, size))
    }),
  )
})

test('a page of more than a hundred items never leaves', () => {
  const envelope = listOf(z.object({ id: z.string() }))
  expect(envelope.safeParse(pageOf(rows(101), 101)).success).toBe(false)
})
