import { expect, test } from 'vitest'

import { startBackgroundWork } from './background-work.ts'
import type { Steps } from './steps.ts'

/** Of this thread: while another process has the processor, nothing is spent. */
function spend(ms: number) {
  const before = process.threadCpuUsage()
  for (let spentMs = 0; spentMs < ms;) {
    const { user, system } = process.threadCpuUsage(before)
    spentMs = (user + system) / 1000
  }
}

/** Notes its name in `ended` after this many steps of a millisecond. */
function* stepsOf(name: string, count: number, ended: string[]): Steps<string> {
  for (let step = 0; step < count; step++) {
    spend(1)
    yield
  }
  ended.push(name)
  return name
}

test('work ends with its result, or with what it throws', async () => {
  const { run } = startBackgroundWork()
  expect(await run(stepsOf('done', 3, []))).toBe('done')
  // eslint-disable-next-line require-yield
  const failing = (function* () {
    throw new Error('broken')
  })()
  await expect(run(failing)).rejects.toThrow('broken')
  expect(await run(stepsOf('still running', 1, []))).toBe('still running')
})

test('much work at once leaves the event loop free between slices', async () => {
  const all = Array.from({ length: 40 }, (_, index) => stepsOf(String(index), 10, []))
  let turns = 0
  let isDone = false
  const countTurns = () => {
    turns++
    if (!isDone) setImmediate(countTurns)
  }
  setImmediate(countTurns)
  await Promise.all(all.map((steps) => startBackgroundWork().run(steps)))
  isDone = true
  // 400 ms in slices of 8 ms: other work has had its turn after each of them.
  expect(turns).toBeGreaterThan(40)
})

test('short work overtakes long work, also what the long work began in several runs', async () => {
  const ended: string[] = []
  const long = startBackgroundWork()
  await long.run(stepsOf('first part', 120, ended))
  const running = [
    long.run(stepsOf('second part', 40, ended)),
    startBackgroundWork().run(stepsOf('short', 20, ended)),
  ]
  await Promise.all(running)
  expect(ended).toEqual(['first part', 'short', 'second part'])
  expect(long.usedMs()).toBeGreaterThanOrEqual(160)
})

test('long work shares the time, and ends although short work keeps coming', async () => {
  const ended: string[] = []
  const long = ['one', 'two'].map((name) => startBackgroundWork().run(stepsOf(name, 150, ended)))
  let isDone = false
  const others = (async () => {
    while (!isDone) await startBackgroundWork().run(stepsOf('short', 5, []))
  })()
  const another = startBackgroundWork().run(stepsOf('much longer', 1500, ended))
  await Promise.all(long)
  isDone = true
  expect(ended.toSorted()).toEqual(['one', 'two'])
  await Promise.all([others, another])
})

test('work whose signal aborts ends', async () => {
  const stopping = new AbortController()
  const endless = (function* (): Steps<void> {
    for (;;) yield
  })()
  const running = startBackgroundWork(stopping.signal).run(endless)
  setTimeout(() => stopping.abort(new Error('stopped')), 30)
  await expect(running).rejects.toThrow('stopped')
})
