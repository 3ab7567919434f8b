import { expect, test } from 'vitest'

import { isDataUrl, readDataUrl, writeDataUrl } from './data-url.ts'

test('what is written can be read again', () => {
  const url = writeDataUrl({ mediaType: 'image/png', data: 'QUJD,' })
  expect(isDataUrl(url)).toBe(true)
  expect(readDataUrl(url)).toEqual({ type: 'base64', mediaType: 'image/png', data: 'QUJD,' })
})

test.each([
  ['DATA:Image/PNG;name=a.png;BASE64,QUJD', 'image/png'],
  ['data:;base64,QUJD', ''],
])('%s is read, whatever its case and its other options', (url, mediaType) => {
  expect(isDataUrl(url)).toBe(true)
  expect(readDataUrl(url)).toMatchObject({ mediaType, data: 'QUJD' })
})

test.each(['data:text/plain,Hello', 'data:base64', `data:a/b;${'x'.repeat(1000)};base64,QUJD`])(
  'case %#: data that are not in base64, or say so too late, are not read',
  (url) => {
    expect(readDataUrl(url)).toBeUndefined()
  },
)

test('other addresses are no data', () => {
  expect(isDataUrl('https://example.org/data:')).toBe(false)
})
