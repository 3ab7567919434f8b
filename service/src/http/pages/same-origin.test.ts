import { expect, test } from 'vitest'

import { isFromOwnPage } from './same-origin.ts'

const own = 'https://gateway.example.com'

test.each([
  [{ 'sec-fetch-site': 'same-origin' }, true],
  [{ 'sec-fetch-site': 'same-origin', origin: 'null' }, true],
  [{ 'sec-fetch-site': 'same-site', origin: own }, false],
  [{ 'sec-fetch-site': 'cross-site', origin: own }, false],
  [{ 'sec-fetch-site': 'none' }, false],
  [{ 'sec-fetch-site': '' }, false],
  [{ origin: own }, true],
  [{ origin: 'null' }, false],
  [{ origin: 'https://wiki.example.com' }, false],
  [{ origin: 'http://gateway.example.com' }, false],
  [{ origin: `${own}.evil.example` }, false],
  [{}, false],
])('%j is from a page of ours: %s', (headers, expected) => {
  expect(isFromOwnPage(headers, own)).toBe(expected)
})
