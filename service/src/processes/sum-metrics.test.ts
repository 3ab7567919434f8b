import { expect, test } from 'vitest'

import { createMetrics } from '#platform/metrics.ts'

import { createMetricSums } from './sum-metrics.ts'

function createProcess() {
  const metrics = createMetrics()
  return { metrics, read: () => metrics.registry.getMetricsAsJSON() }
}

const valueOf = (text: string, name: string) =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${name} `))
    ?.slice(name.length + 1)

test('counts and what is open are added, states are the worst of all processes', async () => {
  const [one, two] = [createProcess(), createProcess()]
  const sums = createMetricSums()
  for (const [{ metrics }, value] of [
    [one, 3],
    [two, 5],
  ] as const) {
    metrics.changesSeen.inc(value)
    metrics.requestSeconds.observe({ method: 'GET', route: '/', status: '200' }, value)
    metrics.streamsOpen.set(value)
    metrics.changesPolledAt.set(value)
    metrics.settlementsWaiting.set(value)
    metrics.limitsAreLocal.set({ kind: 'inference' }, value === 3 ? 1 : 0)
  }
  sums.running.inc(2)
  const text = await sums.print(async () => [await one.read(), await two.read()])
  const labels = '{method="GET",route="/",status="200"}'
  const expected = {
    gatehouse_changes_seen_total: '8',
    [`gatehouse_request_seconds_count${labels}`]: '2',
    [`gatehouse_request_seconds_sum${labels}`]: '8',
    gatehouse_streams_open: '8',
    gatehouse_changes_polled_timestamp_seconds: '3',
    gatehouse_settlements_waiting: '5',
    'gatehouse_limits_local{kind="inference"}': '1',
    gatehouse_processes: '2',
    gatehouse_process_restarts_total: '0',
  }
  const found = Object.keys(expected).map((name) => [name, valueOf(text, name)])
  expect(Object.fromEntries(found)).toEqual(expected)
})

test('counts do not fall when processes end, and what was open is gone', async () => {
  const sums = createMetricSums()
  for (const count of [3, 5]) {
    const { metrics, read } = createProcess()
    metrics.changesSeen.inc(count)
    metrics.streamsOpen.set(count)
    sums.keep(await read())
  }
  const fresh = createProcess()
  fresh.metrics.changesSeen.inc()
  const text = await sums.print(async () => [await fresh.read()])
  expect(valueOf(text, 'gatehouse_changes_seen_total')).toBe('9')
  expect(valueOf(text, 'gatehouse_streams_open')).toBe('0')
})

test('a process that ends while the metrics are read is counted once', async () => {
  const sums = createMetricSums()
  const { metrics, read } = createProcess()
  metrics.changesSeen.inc(3)
  const text = await sums.print(async () => {
    const list = await read()
    sums.keep(list)
    return [list]
  })
  expect(valueOf(text, 'gatehouse_changes_seen_total')).toBe('3')
})

test('every metric of a process is in the sum, except for the time of its start', async () => {
  const { metrics, read } = createProcess()
  const text = await createMetricSums().print(async () => [await read()])
  const names = metrics.registry.getMetricsAsArray().map(({ name }) => name)
  const missing = names.filter((name) => !text.includes(`# TYPE ${name} `))
  expect(missing).toEqual(['process_start_time_seconds'])
})
