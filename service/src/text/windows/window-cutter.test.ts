import { describe, expect, test } from 'vitest'

import { type CutWindow, cutAll, WindowCutter } from './window-cutter.ts'
import { fineGrid, judgeGrid, localGrid, remoteGrid, type WindowGrid } from './window-grid.ts'

function cutInPieces(text: string, grid: WindowGrid, pieceLength: number): CutWindow[] {
  const cutter = new WindowCutter(grid)
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

const boundsOf = (text: string, grid: WindowGrid) =>
  cutAll(text, grid).map(({ start, end, isLast }) => [start, end, isLast])

const words = 'abcdefg '.repeat(150)

describe('new characters, up to the next white space', () => {
  test('the judge: 96, 160 and then 256', () => {
    expect(boundsOf(words, judgeGrid)).toEqual([
      [0, 103, false],
      [103, 263, false],
      [263, 519, false],
      [519, 775, false],
      [775, 1031, false],
      [1031, 1200, true],
    ])
  })

  test('a remote scorer: 48, 64 and then 96', () => {
    expect(boundsOf(words, remoteGrid()).slice(0, 4)).toEqual([
      [0, 55, false],
      [55, 119, false],
      [119, 215, false],
      [215, 311, false],
    ])
  })

  test('the scorer in this process: 96 and then 64', () => {
    expect(boundsOf(words, localGrid).slice(0, 3)).toEqual([
      [0, 103, false],
      [103, 167, false],
      [167, 231, false],
    ])
  })

  test('the scripted scorer: 24', () => {
    expect(boundsOf(words, fineGrid).slice(0, 3)).toEqual([
      [0, 31, false],
      [31, 55, false],
      [55, 79, false],
    ])
  })
})

test.each([
  [24, [24]],
  [48, [48]],
  [60, [48, 60]],
  [256, [48, 64, 256]],
])('a remote scorer with a step of %i never has a longer one', (step, steps) => {
  expect(remoteGrid(step).steps).toEqual(steps)
})

test('without white space a window is extended by 32 characters', () => {
  expect(boundsOf('x'.repeat(400), judgeGrid)).toEqual([
    [0, 128, false],
    [128, 320, false],
    [320, 400, true],
  ])
  expect(boundsOf('x'.repeat(128), judgeGrid)).toEqual([[0, 128, true]])
  expect(boundsOf('', judgeGrid)).toEqual([])
})

describe.each([
  ['the judge', judgeGrid],
  ['a remote scorer', remoteGrid()],
  ['the scorer in this process', localGrid],
  ['the scripted scorer', fineGrid],
])('%s', (_, grid) => {
  test('a window begins with the characters before it', () => {
    const text = Array.from({ length: 300 }, (_, number) => `${number} `).join('')
    for (const window of cutAll(text, grid)) {
      expect(window.text).toBe(text.slice(Math.max(0, window.start - grid.overlap), window.end))
    }
  })

  test('a surrogate pair is not split', () => {
    for (const window of cutAll(`x${'😀'.repeat(300)}`, grid)) {
      expect(window.text.isWellFormed()).toBe(true)
    }
  })

  test('the pieces in which a text comes change nothing', () => {
    const text = `${'some words 😀 '.repeat(60)}${'y'.repeat(500)} ${'😀'.repeat(400)} end`
    for (const length of [1, 2, 7, 100, 129, 1000]) {
      expect(cutInPieces(text, grid, length)).toEqual(cutAll(text, grid))
    }
  })
})
