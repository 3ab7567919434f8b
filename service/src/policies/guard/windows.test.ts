import { expect, test } from 'vitest'

import { type CutWindow, WindowCutter } from './windows.ts'

function cut(text: string, pieceLength = text.length): CutWindow[] {
  const cutter = new WindowCutter()
  const windows: CutWindow[] = []
  const take = (isEnded: boolean) => {
    for (let next = cutter.next(isEnded); next; next = cutter.next(isEnded)) windows.push(next)
  }
  for (let at = 0; at < text.length; at += pieceLength) {
    cutter.add(text.slice(at, at + pieceLength))
    take(false)
  }
  take(true)
  return windows
}

const boundsOf = (text: string) => cut(text).map(({ start, end, isLast }) => [start, end, isLast])

test('windows have 96, 160 and then 256 new characters, up to the next white space', () => {
  const words = 'abcdefg '.repeat(150)
  expect(boundsOf(words)).toEqual([
    [0, 103, false],
    [103, 263, false],
    [263, 519, false],
    [519, 775, false],
    [775, 1031, false],
    [1031, 1200, true],
  ])
})

test('without white space a window is extended by 32 characters', () => {
  expect(boundsOf('x'.repeat(400))).toEqual([
    [0, 128, false],
    [128, 320, false],
    [320, 400, true],
  ])
  expect(boundsOf('x'.repeat(128))).toEqual([[0, 128, true]])
  expect(boundsOf('')).toEqual([])
})

test('a window begins with the 128 characters before it', () => {
  const text = Array.from({ length: 300 }, (_, number) => `${number} `).join('')
  for (const window of cut(text)) {
    expect(window.text).toBe(text.slice(Math.max(0, window.start - 128), window.end))
  }
})

test('a surrogate pair is not split', () => {
  const text = `x${'😀'.repeat(300)}`
  for (const window of cut(text)) expect(window.text.isWellFormed()).toBe(true)
})

test('the pieces in which a text comes change nothing', () => {
  const text = `${'some words 😀 '.repeat(60)}${'y'.repeat(500)} ${'😀'.repeat(400)} end`
  for (const length of [1, 2, 7, 100, 129, 1000]) expect(cut(text, length)).toEqual(cut(text))
})
