import { expect, test } from 'vitest'

import type { ScoreWindows, Window } from '#policies/guard/window-queue.ts'

import { joinScorers } from './join-window-verdicts.ts'

const error = new Error('no verdict')
const windows: Window[] = ['one', 'two'].map((text) => ({
  channel: 'text',
  text,
  start: 0,
  end: text.length,
  isLast: false,
}))
const join = (...scorers: ScoreWindows[]) =>
  joinScorers(...scorers)(windows, new AbortController().signal)

test('a window hits what any of them says', async () => {
  expect(
    await join(
      async () => [[0], []],
      async () => [[2], [3]],
    ),
  ).toEqual([[0, 2], [3]])
})

test('what one of them says counts where another fails', async () => {
  expect(
    await join(
      async () => [[0], []],
      () => Promise.reject(error),
    ),
  ).toEqual([
    { atoms: [0], error },
    { atoms: [], error },
  ])
  expect(
    await join(
      async () => [[], { atoms: [1], error }],
      async () => [[], [3]],
    ),
  ).toEqual([[], { atoms: [1, 3], error }])
})

test('one that leaves out a window has failed at it', async () => {
  const [first, second] = await join(
    async () => [[0]],
    async () => [[], [1]],
  )
  expect(first).toEqual([0])
  expect(second).toMatchObject({ atoms: [1], error: expect.any(Error) })
})
