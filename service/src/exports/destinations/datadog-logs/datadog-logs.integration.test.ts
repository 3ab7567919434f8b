import { DatadogLogsConfig } from '@gatehouse/contract/exports/sink-config'
import { startDatadogDouble } from '@gatehouse/tools/destinations/datadog-logs'
import { expect, test } from 'vitest'

import { createItems, sendTo } from '#exports/destinations/testing/send-to-double.ts'

import { datadogLogs } from './datadog-logs.ts'

const apiKey = '0123456789abcdef0123456789abcdef'
const now = () => new Date('2026-03-01T12:00:00Z')
const start = () => startDatadogDouble({ apiKey, now })

const configOf = ({ endpoint }: { endpoint: string }, members: object = {}) =>
  DatadogLogsConfig.parse({ endpoint, api_key: apiKey, ...members })

test('events arrive in their order, with all their members and a line to read', async () => {
  await using double = await start()
  const items = createItems(3)
  const config = configOf(double, { tags: ['env:prod', 'team:x'], hostname: 'gate' })
  expect(await sendTo(double, datadogLogs, [config, items])).toEqual({ kind: 'delivered' })
  expect(double.received).toEqual(items.map(({ record }) => record))
  expect(double.logs[0]).toEqual({
    ddsource: 'policy-gateway',
    service: 'policy-gateway',
    ddtags: 'env:prod,team:x',
    hostname: 'gate',
    status: 'warn',
    timestamp: '2026-03-01T10:00:01.001Z',
    message:
      'enforcement refuse policy_id=pol_1 model=model "of" {braces} \\ 日本 request_id=req_1 ' +
      'org_id=org_1 org_seq=1 event_id=019a0000-0000-7000-8000-000000000001',
  })
  expect(double.problems).toEqual([])
})

test('a batch of a thousand events arrives', async () => {
  await using double = await start()
  const outcome = await sendTo(double, datadogLogs, [configOf(double), createItems(1000)])
  expect(outcome).toEqual({ kind: 'delivered' })
  expect(double.received.map(({ org_seq }) => org_seq)).toEqual(
    Array.from({ length: 1000 }, (_, index) => index + 1),
  )
  expect(double.problems).toEqual([])
})

test('members that Datadog would misread arrive unchanged, and set nothing', async () => {
  await using double = await start()
  const members = {
    service: 's',
    ddtags: 't',
    message: 'm',
    status: 3,
    date: '2001-01-01',
    host: 'h',
  }
  const items = createItems(1, members)
  expect(await sendTo(double, datadogLogs, [configOf(double), items])).toEqual({
    kind: 'delivered',
  })
  expect(double.received).toEqual(items.map(({ record }) => record))
  expect(double.logs[0]).toMatchObject({ service: 'policy-gateway', ddtags: '', status: 'warn' })
  expect(double.problems).toEqual([])
})

test('an event that is a day late is not dropped, and says when it happened', async () => {
  await using double = await start()
  const created_at = '2026-02-28T12:00:00.000Z'
  const items = createItems(1, { created_at })
  expect(await sendTo(double, datadogLogs, [configOf(double), items])).toEqual({
    kind: 'delivered',
  })
  expect(double.received).toMatchObject([{ created_at }])
  expect(double.logs[0]).not.toHaveProperty('timestamp')
  expect(double.problems).toEqual([])
})

test('an event that Datadog would cut is refused and not sent', async () => {
  await using double = await start()
  const large = createItems(1, { payload: { text: 'x'.repeat(1_000_000) } })
  expect(await sendTo(double, datadogLogs, [configOf(double), large])).toEqual({
    kind: 'refused',
    error: 'The event is larger than the 1 MB that Datadog stores of a log.',
  })
  const fitting = createItems(1, { payload: { text: 'x'.repeat(990_000) } })
  const sent = await sendTo(double, datadogLogs, [configOf(double), fitting])
  expect(sent).toEqual({ kind: 'delivered' })
  expect(double.received).toHaveLength(1)
  expect(double.problems).toEqual([])
})

test('a batch that grows beyond 5 MB by its tags is to be sent in parts', async () => {
  await using double = await start()
  const config = configOf(double, { tags: Array.from({ length: 50 }, () => 'x'.repeat(200)) })
  const items = createItems(1000)
  expect(await sendTo(double, datadogLogs, [config, items])).toMatchObject({ kind: 'refused' })
  const half = await sendTo(double, datadogLogs, [config, items.slice(0, 400)])
  expect(half).toEqual({ kind: 'delivered' })
  expect(double.received).toHaveLength(400)
})

test.each([
  [400, 'refused'],
  [413, 'refused'],
  [401, 'misconfigured'],
  [403, 'misconfigured'],
  [302, 'misconfigured'],
  [200, 'failed'],
  [408, 'failed'],
  [429, 'failed'],
  [500, 'failed'],
  [503, 'failed'],
] as const)('%i is %s, and the key is not quoted', async (status, kind) => {
  await using double = await start()
  double.intervene(() => ({ status, headers: { 'retry-after': '11' }, body: `Bad ${apiKey}!` }))
  const outcome = await sendTo(double, datadogLogs, [configOf(double), createItems(1)])
  expect(outcome).toMatchObject({ kind, error: expect.stringContaining(`${status}: Bad ***!`) })
  if (kind === 'failed') expect(outcome).toMatchObject({ retryAfterMs: 11_000 })
})

test('another key and another path are the configuration’s fault', async () => {
  await using double = await start()
  const items = createItems(1)
  const wrongKey = await sendTo(double, datadogLogs, [configOf(double, { api_key: 'no' }), items])
  expect(wrongKey).toMatchObject({ kind: 'misconfigured' })
  const elsewhere = configOf({ endpoint: `${double.endpoint}/elsewhere` })
  const wrongPath = await sendTo(double, datadogLogs, [elsewhere, items])
  expect(wrongPath).toMatchObject({ kind: 'misconfigured' })
  expect(double.received).toEqual([])
})

test('a certificate without a trusted issuer is the configuration’s fault', async () => {
  await using double = await start()
  const distrusted = { endpoint: double.endpoint, ca: '' }
  const outcome = await sendTo(distrusted, datadogLogs, [configOf(double), createItems(1)])
  expect(outcome).toMatchObject({ kind: 'misconfigured' })
})
