import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { createLog } from '#platform/log.ts'

import { logReadiness } from './log-readiness.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function start(reasons: string[]) {
  const lines: { event: string; reasons?: string }[] = []
  const log = createLog('info', {
    write: (line) => lines.push(JSON.parse(line) as (typeof lines)[0]),
  })
  const state = { reasons }
  const readiness = logReadiness(async () => state.reasons, log)
  return { lines: () => lines.map(({ event, reasons }) => [event, reasons]), state, readiness }
}

test('the reasons are logged when they change, however long they last', async () => {
  const { lines, state } = start(['no database'])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines()).toEqual([['not_ready', 'no database']])
  state.reasons = ['no database', 'no disk']
  await vi.advanceTimersByTimeAsync(60_000)
  state.reasons = []
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines().slice(1)).toEqual([
    ['not_ready', 'no database; no disk'],
    ['ready', undefined],
  ])
})

test('a start that is ready soon logs no reasons, and a process that drains none either', async () => {
  const { lines, state, readiness } = start(['the policies are not in force yet'])
  await vi.advanceTimersByTimeAsync(500)
  state.reasons = []
  await vi.advanceTimersByTimeAsync(1000)
  readiness.stop()
  state.reasons = ['draining']
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines()).toEqual([['ready', undefined]])
})
