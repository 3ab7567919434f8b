import { describe, expect, test } from 'vitest'

import { joinMessages, joinParts, otherReadings, readingsOf, textOf, wholesOf } from './passage.ts'

describe('joinParts', () => {
  test('one part is itself', () => {
    expect(joinParts(['', 'one'])).toEqual({ parts: ['one'], wholes: [] })
  })

  test('several parts are read with a line break between them, and without', () => {
    expect(joinParts(['The secret w', 'ord']).wholes).toEqual([
      'The secret w\nord',
      'The secret word',
    ])
  })

  test('white space at a seam needs no line break', () => {
    expect(joinParts(['about kumquat ', 'marmalade']).wholes).toEqual(['about kumquat marmalade'])
    expect(joinParts(['about kumquat', '\tmarmalade']).wholes).toEqual(['about kumquat\tmarmalade'])
  })
})

test('messages may be apart while their parts are not', () => {
  expect(joinMessages([['proj', 'ect'], ['falcon']]).wholes).toEqual([
    'proj\nect\nfalcon',
    'project\nfalcon',
    'projectfalcon',
  ])
})

test('a text with escapes is also read decoded', () => {
  expect(readingsOf(joinParts(['a\\nb']))).toEqual(['a\\nb', 'a\nb'])
  expect(otherReadings(joinParts(['a\\u00', '41']))).toEqual(['a\\u00\n41', 'a\\u0041', 'aA'])
})

test('as a whole a passage is not read part by part', () => {
  expect(wholesOf(joinParts(['a', 'b']))).toEqual(['a\nb', 'ab'])
  expect(wholesOf(joinParts(['a']))).toEqual(['a'])
  expect(textOf(joinParts(['a', 'b']))).toBe('a\nb')
  expect(textOf(joinParts([]))).toBe('')
})
