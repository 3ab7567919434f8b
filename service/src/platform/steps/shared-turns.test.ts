import { expect, test } from 'vitest'

import { goOnLater, noteBegun, timeToBegin, waitForSlice } from './shared-turns.ts'

const stepMs = 0.5

function takeStep() {
  for (const startedMs = performance.now(); performance.now() - startedMs < stepMs;);
}

/** Work of this many steps. Resolves when it has ended. */
function work(owner: string, count: number, onStep = () => {}): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let steps = count
  goOnLater(owner, {
    advance(untilMs) {
      do {
        takeStep()
        onStep()
        if (--steps > 0) continue
        resolve()
        return true
      } while (performance.now() < untilMs)
      return false
    },
  })
  return promise
}

test('however much work there is, there is one slice of it in a turn of the event loop', async () => {
  let [inThisTurn, most, isOver] = [0, 0, false]
  const turn = () => {
    most = Math.max(most, inThisTurn)
    inThisTurn = 0
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const onStep = () => void inThisTurn++
  const all = Array.from({ length: 200 }, (_, index) => work(`org_${index % 8}`, 3, onStep))
  await Promise.all(all)
  isOver = true
  // With a slice for each of them it would be 200 at least. While another program has the processor the turn is long, and so may be
  // the slice: 8 ms at most.
  expect(most).toBeLessThan(40)
})

test('owners share the time, however much work each of them has', async () => {
  const ended: string[] = []
  const large = Array.from({ length: 10 }, () => work('large', 50).then(() => ended.push('large')))
  const small = work('small', 40).then(() => ended.push('small'))
  await small
  expect(ended).toEqual(['small'])
  await Promise.all(large)
})

test('an owner that has had its share waits for others, also if its work is short and comes again and again', async () => {
  let [isOver, taken] = [false, 0]
  const greedy = Array.from({ length: 5 }, async () => {
    while (!isOver) await work('greedy', 2, () => void taken++)
  })
  await work('patient', 200)
  isOver = true
  // As much as the other, and something for the clock.
  expect(taken).toBeLessThan(400)
  await Promise.all(greedy)
})

test('work begins at once as long as there is time for it in this turn', async () => {
  await waitForSlice('someone')
  await new Promise(setImmediate)
  expect(timeToBegin('org_1')).toBeGreaterThan(0)
  noteBegun('org_1', 100)
  expect(timeToBegin('org_2')).toBe(0)
  await new Promise(setImmediate)
  expect(timeToBegin('org_2')).toBeGreaterThan(0)
})

test('work does not begin before work of the same owner that waits', async () => {
  const going = work('org_1', 20)
  expect(timeToBegin('org_1')).toBe(0)
  expect(timeToBegin('org_2')).toBeGreaterThan(0)
  await going
})

test('where everything else makes turns long, work goes on for longer', async () => {
  let [turns, isOver] = [0, false]
  const turn = () => {
    turns++
    for (const startedMs = performance.now(); performance.now() - startedMs < 20;);
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await work('org_1', 400)
  isOver = true
  // 200 ms of work. In slices of 2 ms it would be 100 turns.
  expect(turns).toBeLessThan(80)
})
