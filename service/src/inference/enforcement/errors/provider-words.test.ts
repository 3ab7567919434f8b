import { expect, test } from 'vitest'

import { boundWords, cutText, onlyNames, wordsOf } from './provider-words.ts'

const said = {
  message: 'No.',
  type: 'invalid_request_error',
  code: 'too_long',
  param: 'input[0].a-b',
}

test('what is short stays as it is', () => {
  expect(boundWords(said)).toEqual(said)
  expect(boundWords({ message: '', type: null, code: null })).toEqual({
    message: '',
    type: null,
    code: null,
  })
})

test('a long message is cut, and a long word is left out', () => {
  const long = { message: 'm'.repeat(2001), type: 't'.repeat(201), code: 'c'.repeat(200) }
  expect(boundWords({ ...long, param: 'p'.repeat(201) })).toEqual({
    message: 'm'.repeat(2000),
    type: null,
    code: long.code,
  })
})

test.each([
  ['ab😀cd', 6, 'ab😀cd'],
  ['ab😀cd', 4, 'ab😀'],
  ['ab😀cd', 3, 'ab'],
  ['ab😀cd', 2, 'ab'],
  ['😀', 1, ''],
  ['ab', 0, ''],
  ['ab', -1, ''],
])('of %j at most %i units are kept, and no half character: %j', (text, most, cut) => {
  expect(cutText(text, most)).toBe(cut)
})

test.each(['invalid_request_error', '400', 'messages[0].content', 'x-y.z', 'a'.repeat(100)])(
  '%j may be the name of something',
  (word) => {
    const names = { type: word, code: word, param: word }
    expect(onlyNames({ message: 'No.', ...names })).toEqual({ message: '', ...names })
  },
)

test.each(['', 'two words', 'a@example.com', 'naïve', '<b>', 'a\n', 'a'.repeat(101)])(
  '%j is no name',
  (word) => {
    const words = { message: 'No.', type: word, code: word, param: word }
    expect(onlyNames(words)).toEqual({ message: '', type: null, code: null })
  },
)

test('all that was said is one text', () => {
  expect(wordsOf(said)).toBe('No.\ninvalid_request_error\ntoo_long\ninput[0].a-b')
  expect(wordsOf({ message: '', type: null, code: null })).toBe('')
})
