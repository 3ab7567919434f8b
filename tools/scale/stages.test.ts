import { expect, test } from 'vitest'

import { fillTables, scaleTables } from './scale-tables.ts'
import { callMicroseconds, stageOf } from './stages.ts'

const costs = {
  measuredOn: '2030-01-01',
  machine: 'a test',
  plain: { bare: 100, service: 300, worker: 50, postgres: 200, redis: 100 },
  stream: { bare: 100, service: 300, worker: 60, postgres: 200, redis: 100 },
  microsecondsPerFrame: 10,
  kilobytesPerStream: 50,
  megabytesPerProcess: 200,
}

test('a long stream costs what was measured and the frames it has more', () => {
  expect(callMicroseconds(costs)).toBe(300 + 270 * 10)
})

test('a thousand requests per second need three busy cores of the service, in five processes', () => {
  const stage = stageOf(1000, { ...costs, microsecondsPerFrame: 10 })
  expect(stage).toMatchObject({ cells: 1, processes: 5, primaries: 1, redisPrimaries: 1 })
  expect(stage.serviceCores).toBeCloseTo(3)
  expect(stage.postgresCores).toBeCloseTo(0.2)
  expect(stage.inFlight).toBe(8000)
})

test('calls take the worker time too: a thousand per second need one, twenty thousand two', () => {
  expect(stageOf(1000, costs)).toMatchObject({ workers: 1, workerCores: 0.06 })
  expect(stageOf(20_000, costs)).toMatchObject({ workers: 2, workerCores: 1.2 })
})

test('the goal stands in for a worker that was not measured, and the page says so', () => {
  const unmeasured = { ...costs, stream: { ...costs.stream, worker: null } }
  expect(stageOf(1000, unmeasured).workerCores).toBeCloseTo(0.03)
  expect(scaleTables(unmeasured)['costs']).toContain('worker (its goal: not measured yet)')
  expect(scaleTables(costs)['costs']).toContain('| worker | 50 | 0.5 | 60 | 0.6 |')
})

test('a million requests per second are twenty cells of fifty thousand', () => {
  const [cell, all] = [stageOf(50_000, costs), stageOf(1_000_000, costs)]
  expect(all.cells).toBe(20)
  expect(all.processes).toBe(20 * cell.processes)
  expect(all.connectionsPerPrimary).toBe(cell.connectionsPerPrimary)
})

test('the goal stands in for the memory of a stream that was not measured, and the page says so', () => {
  const unmeasured = { ...costs, kilobytesPerStream: null }
  expect(stageOf(1000, unmeasured).memoryGigabytes).toBeCloseTo(
    (1000 + 200 + (8000 * 51.2) / 1024) / 1024,
  )
  expect(scaleTables(unmeasured)['costs']).toContain('51.2 KB (its goal: not measured yet)')
  expect(scaleTables(costs)['costs']).not.toContain('not measured')
})

test('a table replaces what stood in its place, and nothing else; without a place it is an error', () => {
  const page = 'a\n<!-- t: printed by ./dev generate -->\nold\n<!-- end of t -->\nb'
  const filled = fillTables(page, { t: 'new' })
  expect(filled).toBe('a\n<!-- t: printed by ./dev generate -->\n\nnew\n\n<!-- end of t -->\nb')
  expect(fillTables(filled, { t: 'new' })).toBe(filled)
  expect(() => fillTables('a', { t: 'new' })).toThrow(/no place/)
})
