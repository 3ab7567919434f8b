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

test('an asker that keeps others waiting is told before a long step is taken elsewhere', async () => {
  const told: string[] = []
  function* work(): Steps<void> {
    yield
    yield { here: () => {}, elsewhere: async () => void told.push('elsewhere') }
  }
  await runInTurns(work(), { ...someone, onElsewhere: () => void told.push('told') })
  expect(told).toEqual(['told', 'elsewhere'])
})

test('long work ends when no asker waits for it any more', async () => {
  const leaving = new AbortController()
  function* work(): Steps<void> {
    for (;;) yield
  }
  const running = runInTurns(work(), { owner: 'org_1', signal: leaving.signal })
  setTimeout(() => leaving.abort(new Error('gone')), 20)
  await expect(running).rejects.toThrow('gone')
})

test('many who take long share one slice in a turn of the event loop', async () => {
  let [inThisTurn, most, isOver] = [0, 0, false]
  function* work(): Steps<void> {
    for (let step = 0; step < 40; step++) {
      for (const startedMs = performance.now(); performance.now() - startedMs < 0.5;);
      inThisTurn++
      yield
    }
  }
  const turn = () => {
    most = Math.max(most, inThisTurn)
    inThisTurn = 0
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  // Each of them may begin at once, as long as there is time for it.
  const all = Array.from({ length: 16 }, async (_, index) =>
    runInTurns(work(), { ...someone, owner: `org_${index}` }),
  )
  await Promise.all(all)
  isOver = true
  // With eight milliseconds for each of them it would be 256.
  expect(most).toBeLessThan(40)
})
