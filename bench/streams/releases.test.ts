import { expect, test } from 'vitest'

import { createReleaseCounter, noReleases, readChunk } from './releases.ts'

const frame = (content: string) => `data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`

test('a chunk has as many frames as it completes; a role without words is no text', () => {
  expect(readChunk(frame('a') + frame('b'))).toEqual({ frames: 2, isText: true })
  expect(readChunk('data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n')).toEqual({
    frames: 1,
    isText: false,
  })
  expect(readChunk(frame('a').slice(0, 20))).toEqual({ frames: 0, isText: false })
})

test('frames a pace apart are releases of one; frames that leave together are one release', () => {
  const all = noReleases()
  const note = createReleaseCounter(all, 1000)
  const one = { frames: 1, isText: true }
  note(1010, { frames: 1, isText: false })
  note(1030, one)
  note(1050, one)
  // Held back for a second, then sent in two chunks.
  note(2050, { frames: 30, isText: true })
  note(2052, { frames: 17, isText: true })
  expect(all).toEqual({
    frames: 50,
    releases: 4,
    mostFrames: 47,
    longestGapMs: 1000,
    firstTextMs: [30],
  })
})

test('streams are counted together, each by its own gaps', () => {
  const all = noReleases()
  const [first, second] = [createReleaseCounter(all, 0), createReleaseCounter(all, 500)]
  first(20, { frames: 1, isText: true })
  second(520, { frames: 2, isText: true })
  first(60, { frames: 1, isText: true })
  expect(all).toEqual({
    frames: 4,
    releases: 3,
    mostFrames: 2,
    longestGapMs: 40,
    firstTextMs: [20, 20],
  })
})

test('the second part of a frame that was cut in two does not make a release of its own', () => {
  const all = noReleases()
  const note = createReleaseCounter(all, 0)
  note(10, { frames: 0, isText: true })
  note(12, { frames: 1, isText: false })
  expect(all).toMatchObject({ frames: 1, releases: 1, firstTextMs: [10] })
})
