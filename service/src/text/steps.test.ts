import { expect, test } from 'vitest'

import { runInTurns, type Steps } from './steps.ts'

const someone = { owner: 'org_1', signal: new AbortController().signal }

test('others get their turn, also where every long step is over without one', async () => {
  let isTurn = false
  setImmediate(() => (isTurn = true))
  function* work(): Steps<boolean> {
    const endMs = performance.now() + 200
    while (performance.now() < endMs && !isTurn) {
      yield { here: () => {}, elsewhere: () => Promise.resolve() }
    }
    return isTurn
  }
  expect(await runInTurns(work(), someone)).toBe(true)
})

test('what is short is done at once, without a promise', () => {
  function* work(): Steps<string> {
    yield
    return 'done'
  }
  expect(runInTurns(work(), someone)).toBe('done')
})

test('what takes long lets others have their turn', async () => {
  let isTurn = false
  setImmediate(() => (isTurn = true))
  function* work(): Steps<boolean> {
    const endMs = performance.now() + 200
    while (performance.now() < endMs && !isTurn) yield
    return isTurn
  }
  expect(await runInTurns(work(), someone)).toBe(true)
})
