import { expect, test } from 'vitest'

import { createLoopWatch } from './loop-watch.ts'

/** A loop whose turns take as long as the test says. */
function createLoop() {
  let nowMs = 0
  const watch = createLoopWatch(() => nowMs)
  watch.stop()
  return {
    turns(count: number, ms: number) {
      for (let turn = 0; turn < count; turn++) {
        nowMs += ms
        watch.check()
      }
    },
    behindMs: watch.behindMs,
  }
}

test('one long turn does not mean that the loop is behind, however long it was', () => {
  const { turns, behindMs } = createLoop()
  turns(1, 10_000)
  expect(behindMs()).toBe(0)
  turns(10, 25)
  turns(2, 10_000)
  expect(behindMs()).toBe(0)
})

test('several long turns in a row do, from when the first was due; one short turn ends it', () => {
  const { turns, behindMs } = createLoop()
  turns(3, 80)
  expect(behindMs()).toBe(220)
  turns(2, 80)
  expect(behindMs()).toBe(380)
  turns(1, 30)
  expect(behindMs()).toBe(0)
})
