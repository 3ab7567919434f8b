import { expect, test } from 'vitest'

import { isText } from './visit-strings.ts'

test.each([
  ['url', 'data:image/png;base64,iVBORw0KGgo=', false],
  ['data', 'iVBORw0KGgo=', false],
  ['url', 'https://example.com/a b', true],
  // What begins like data and says something is text.
  ['description', 'data:;base64, words for the model', true],
  ['data', 'words for the model', true],
  ['id', 'msg_1', false],
  ['id', 'words for the model', true],
])('%s "%s" is text: %s', (name, value, expected) => {
  expect(isText(name, value)).toBe(expected)
})
