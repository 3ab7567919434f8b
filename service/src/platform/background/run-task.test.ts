import { setTimeout as sleep } from 'node:timers/promises'

import { expect, onTestFinished, test } from 'vitest'

import { createLog } from '#platform/log.ts'
import { createMetrics } from '#platform/metrics.ts'

import { inBatches } from './in-batches.ts'
import { runTask, type Task, type TaskTurn } from './run-task.ts'

const described = {
  name: 'trial',
  everyMs: 0,
  share: 0.2,
  rowsMax: 10,
  failureCode: 'trial_failed',
}

function start(task: Task) {
  const stopping = new AbortController()
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  const metrics = createMetrics()
  const running = runTask(task, { log, metrics, now: () => new Date() }, stopping.signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  onTestFinished(stop)
  const count = async (name: 'backgroundSeconds' | 'backgroundRuns' | 'backgroundFailures') =>
    (await metrics[name].get()).values.find(({ labels }) => labels.task === 'trial')?.value ?? 0
  return { stop, lines, count }
}

test('steps of one pass and passes that follow each other take at most their share', async () => {
  let busyMs = 0
  const work = async () => {
    const startedMs = performance.now()
    await sleep(5)
    busyMs += performance.now() - startedMs
  }
  const run = async ({ rest }: TaskTurn) => {
    await work()
    await rest()
    await work()
  }
  const startedMs = performance.now()
  const { stop, count } = start({ ...described, run })
  await sleep(600)
  await stop()
  const passedMs = performance.now() - startedMs
  expect(busyMs).toBeGreaterThan(30)
  // A step is under way, or has not rested yet, when the time is up.
  expect(busyMs).toBeLessThan(passedMs * 0.2 + 30)
  expect((await count('backgroundSeconds')) * 1000).toBeGreaterThanOrEqual(busyMs - 1)
  expect(await count('backgroundRuns')).toBeGreaterThan(2)
})

test('a rest is bounded, however long a step took, and the remainder is forgotten', async () => {
  const beganMs: number[] = []
  const run = async ({ rest }: TaskTurn) => {
    beganMs.push(performance.now())
    if (beganMs.length === 1) await sleep(50)
    await rest()
  }
  start({ ...described, share: 0.000_1, restMaxMs: 100, run })
  await expect.poll(() => beganMs.length, { interval: 5, timeout: 5000 }).toBe(3)
  const [first = 0, second = 0, third = 0] = beganMs
  // The pass rests once within and once after it. 50 ms with that share would be a rest of 500 s.
  expect(second - first).toBeGreaterThanOrEqual(145)
  expect(third - first).toBeLessThan(2000)
})

test('a pass that fails is logged and counted, and the task goes on', async () => {
  let passes = 0
  const run = async () => {
    if (++passes < 3) throw new Error('the database is away')
    return 60_000
  }
  const { lines, count } = start({ ...described, run })
  await expect.poll(() => passes).toBe(3)
  expect(lines.filter((line) => line.includes('trial_failed'))).toHaveLength(1)
  expect(await count('backgroundFailures')).toBe(2)
})

test.each(['first', 'between passes', 'between steps'])(
  'the end is not held up by a wait: %s',
  async (wait) => {
    const forever = 600_000
    const run = async ({ rest }: TaskTurn) => {
      if (wait === 'between steps') {
        await sleep(20)
        await rest()
      }
      return forever
    }
    const share = wait === 'between steps' ? 0.000_01 : 1
    const firstMs = wait === 'first' ? forever : 0
    const { stop, lines, count } = start({ ...described, share, firstMs, run })
    await sleep(140)
    const stoppedMs = performance.now()
    await stop()
    expect(performance.now() - stoppedMs).toBeLessThan(200)
    expect(lines).toEqual([])
    // The rest that was cut short is not counted as work.
    expect(await count('backgroundSeconds')).toBeLessThan(0.1)
  },
)

test('loops that work at the same time share one share', async () => {
  let busyMs = 0
  const { stop } = start({
    ...described,
    async loop(pace, signal) {
      const keepOn = async () => {
        while (!signal.aborted) {
          busyMs += 5
          await sleep(pace.restAfter(5), undefined, { signal }).catch(() => undefined)
        }
      }
      await Promise.all([keepOn(), keepOn(), keepOn()])
    },
  })
  await sleep(400)
  await stop()
  expect(busyMs).toBeLessThan(400 * 0.2 + 40)
})

test('batches go on until one is not full, but not for ever', async () => {
  let rests = 0
  const rest = async () => void rests++
  const counts = [10, 10, 3, 10]
  await inBatches(rest, 10, async () => counts.shift() ?? 0)
  expect([rests, counts]).toEqual([2, [10]])
  let batches = 0
  await inBatches(rest, 10, async () => {
    batches++
    return 10
  })
  expect(batches).toBe(100)
})
