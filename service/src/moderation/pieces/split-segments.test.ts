import fc from 'fast-check'
import { expect, test } from 'vitest'

import { groupPieces, splitSegments } from './split-segments.ts'

const user = (text: string) => ({ role: 'user', text }) as const

test('every part of a text is in a piece, and no character is cut in two', () => {
  fc.assert(
    fc.property(fc.integer({ min: 7900, max: 40_000 }), fc.nat(40_000), (length, place) => {
      const at = Math.min(place, length)
      const text = `${'🙂'.repeat(length / 2)}`.slice(0, at) + 'NEEDLE' + 'b🙂'.repeat(length / 3)
      const pieces = splitSegments([user(text.toWellFormed())], false).map(
        ({ segment }) => segment.text,
      )
      expect(pieces.every((piece) => piece.length <= 8000 && piece.isWellFormed())).toBe(true)
      expect(pieces.some((piece) => piece.includes('NEEDLE'))).toBe(true)
      expect(pieces.reduce((sum, piece) => sum + piece.length, 0)).toBeGreaterThanOrEqual(
        text.length,
      )
    }),
    { numRuns: 200 },
  )
})

test('what stands across a cut is whole in one of both pieces', () => {
  for (let at = 7990; at <= 8010; at++) {
    const text = `${'a'.repeat(at)}NEEDLE${'b'.repeat(9000)}`
    const pieces = splitSegments([user(text)], false)
    expect(pieces.some(({ segment }) => segment.text.includes('NEEDLE'))).toBe(true)
  }
})

test('an empty text has no piece, and an image goes with the first piece', () => {
  const image = { ...user('a'.repeat(9000)), imageUrl: 'data:image/png;base64,AAAA' }
  const alone = { ...image, text: '' }
  const imagesOf = (readsImages: boolean) =>
    splitSegments([user(''), image, alone], readsImages).map(({ index, segment }) => [
      index,
      segment.imageUrl !== undefined,
    ])
  expect(imagesOf(true)).toEqual([
    [1, true],
    [1, false],
    [2, true],
  ])
  expect(imagesOf(false)).toEqual([
    [1, false],
    [1, false],
  ])
})

test('half a character becomes a whole one', () => {
  const [piece] = splitSegments([user('a\ud83d')], false)
  expect(piece?.segment.text).toBe('a\ufffd')
})

test('an image of up to 20 MB is read, a larger one is not', () => {
  const piecesOf = (bytes: number) => {
    const imageUrl = `data:image/png;base64,${'A'.repeat(Math.ceil(bytes / 3) * 4)}`
    return splitSegments([{ ...user(''), imageUrl }], true)
  }
  expect(piecesOf(20_000_000)).toHaveLength(1)
  expect(piecesOf(20_001_000)).toEqual([])
})

test('groups are no larger than allowed, and an image is alone', () => {
  const image = { ...user('i'), imageUrl: 'https://images.example.com/1.png' }
  const pieces = splitSegments([user('a'), image, user('b'), user('c'), user('d')], true)
  const groups = groupPieces(pieces, 2).map((group) => group.map(({ segment }) => segment.text))
  expect(groups).toEqual([['a', 'b'], ['i'], ['c', 'd']])
})
