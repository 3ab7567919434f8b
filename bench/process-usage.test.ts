import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import { expect, onTestFinished, test } from 'vitest'

import { createCpuMeter, memoryMegabytes, treeSeconds } from './process-usage.ts'

const start = (script: string): ChildProcess => {
  const child = spawn(process.execPath, ['--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}
const work = 'const end = performance.now() + 300; while (performance.now() < end);'

test('CPU time includes that of a child process which has ended, and never falls', async () => {
  const child = start(`
    const { spawn } = require('node:child_process')
    const busy = spawn(process.execPath, ['--eval', ${JSON.stringify(work)}])
    busy.once('exit', () => process.stdout.write('done'))
    setInterval(() => {}, 1000)
  `)
  const read = createCpuMeter([child.pid ?? 0])
  const readings = [await read()]
  const done = once(child.stdout ?? child, 'data')
  const timer = setInterval(() => void read().then((value) => readings.push(value)), 20)
  await done
  clearInterval(timer)
  await sleep(50)
  readings.push(await read())
  expect(readings).toEqual(readings.toSorted((left, right) => left - right))
  // The child has been busy for 300 ms of wall time; a loaded machine gives it less than that.
  expect((readings.at(-1) ?? 0) - (readings[0] ?? 0)).toBeGreaterThan(50_000)
})

test('CPU time of a thread that has ended stays in the sum', async () => {
  const child = start(`
    const { Worker } = require('node:worker_threads')
    const busy = new Worker(${JSON.stringify(`${work} setTimeout(() => {}, 200)`)}, { eval: true })
    busy.once('exit', () => process.stdout.write('done'))
    setInterval(() => {}, 1000)
  `)
  const read = createCpuMeter([child.pid ?? 0])
  const done = once(child.stdout ?? child, 'data')
  let most = 0
  const timer = setInterval(() => void read().then((value) => (most = Math.max(most, value))), 20)
  await done
  clearInterval(timer)
  expect(await read()).toBeGreaterThanOrEqual(most)
})

test('the memory of a process includes that of its children', async () => {
  // The child of the child ends with its parent, when its input does.
  const child = start(`
    const { spawn } = require('node:child_process')
    const idle = "process.stdin.resume(); process.stdout.write('started')"
    spawn(process.execPath, ['--eval', idle]).stdout.pipe(process.stdout)
  `)
  const alone = start("process.stdout.write('started'); setInterval(() => {}, 1000)")
  await Promise.all([once(child.stdout ?? child, 'data'), once(alone.stdout ?? alone, 'data')])
  const [both, one] = await Promise.all([
    memoryMegabytes([child.pid ?? 0]),
    memoryMegabytes([alone.pid ?? 0]),
  ])
  expect(both).toBeGreaterThan(one * 1.4)
})

test('the time of a tree has that of children which were started and ended unseen', async () => {
  const child = start(`
    const { spawnSync } = require('node:child_process')
    spawnSync(process.execPath, ['--eval', ${JSON.stringify(work)}])
    process.stdout.write('done')
    setInterval(() => {}, 1000)
  `)
  await once(child.stdout ?? child, 'data')
  expect(await treeSeconds([child.pid ?? 0])).toBeGreaterThan(0.05)
})
