import { expect, test } from 'vitest'

import { findWords } from './words.ts'

test.each([
  ['', []],
  ['one two', ['one', 'two']],
  ["don't 'quote' it's!", ["don't", 'quote', "it's"]],
  ['@user a$$ sh*t!!', ['user', 'a$$', 'sh*t']],
  ['élan 12 漢字', ['élan', '12', '漢字']],
  ["!!! ''' ***", []],
])('the words of %j', (text, words) => {
  const bounds = findWords(text)
  const found = words.map((_, index) => text.slice(bounds[index * 2], bounds[index * 2 + 1]))
  expect([bounds.length / 2, found]).toEqual([words.length, words])
})
