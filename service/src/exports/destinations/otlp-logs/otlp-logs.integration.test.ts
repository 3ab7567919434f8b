import { createHash } from 'node:crypto'

import { OtlpLogsConfig } from '@gatehouse/contract/exports/sink-config'
import { startOtlpDouble } from '@gatehouse/tools/destinations/otlp-logs'
import { expect, test } from 'vitest'

import { createItems, sendTo } from '#exports/destinations/testing/send-to-double.ts'

import { otlpLogs } from './otlp-logs.ts'

const value = 'Bearer 5d41402abc4b2a76b9719d911017c592'
const header = { name: 'X-Auth', value }

const configOf = ({ endpoint }: { endpoint: string }, members: object = {}) =>
  OtlpLogsConfig.parse({ endpoint, header_name: 'X-Auth', header_value: value, ...members })

test('events arrive in their order, with all their members', async () => {
  await using double = await startOtlpDouble({ header })
  const items = createItems(3)
  expect(await sendTo(double, otlpLogs, [configOf(double), items])).toEqual({ kind: 'delivered' })
  expect(double.received).toEqual(items.map(({ record }) => record))
  expect(double.serviceNames).toEqual(['policy-gateway'])
  expect(double.logs[0]).toEqual({
    timeUnixNano: '1772359201001000000',
    observedTimeUnixNano: '1772366400000000000',
    severityNumber: 13,
    severityText: 'WARN',
    eventName: 'gatehouse.audit.enforcement',
    body: { stringValue: expect.stringMatching(/^enforcement refuse policy_id=pol_1 /) },
  })
  expect(double.problems).toEqual([])
})

test('what was allowed is no warning, and an erased payload is null', async () => {
  await using double = await startOtlpDouble()
  const allowed = {
    outcome: 'completed',
    enforced: false,
    decision: 'allow',
    effective_decision: 'allow',
  }
  const items = createItems(1, { ...allowed, payload: null, payload_salt: null })
  const config = configOf(double, { header_value: undefined, service_name: 'gate' })
  expect(await sendTo(double, otlpLogs, [config, items])).toEqual({ kind: 'delivered' })
  expect(double.received).toEqual(items.map(({ record }) => record))
  expect(double.logs).toMatchObject([{ severityNumber: 9, severityText: 'INFO' }])
  expect(double.serviceNames).toEqual(['gate'])
  expect(double.problems).toEqual([])
})

test('the payload arrives as the text that its hash was made of', async () => {
  await using double = await startOtlpDouble()
  const payload = { b: 1, a: { text: 'é"\\' } }
  const salt = Buffer.alloc(16, 1)
  const hash = createHash('sha256').update(salt).update(JSON.stringify(payload)).digest('hex')
  const items = createItems(1, { payload, payload_hash: hash, payload_salt: salt.toString('hex') })
  await sendTo(double, otlpLogs, [configOf(double), items])
  const [{ payload: arrived, payload_salt } = {}] = double.received
  const again = createHash('sha256').update(Buffer.from(String(payload_salt), 'hex'))
  expect(again.update(JSON.stringify(arrived)).digest('hex')).toBe(hash)
})

test('a batch of a thousand events arrives', async () => {
  await using double = await startOtlpDouble({ header })
  const outcome = await sendTo(double, otlpLogs, [configOf(double), createItems(1000)])
  expect(outcome).toEqual({ kind: 'delivered' })
  expect(double.received.map(({ org_seq }) => org_seq)).toEqual(
    Array.from({ length: 1000 }, (_, index) => index + 1),
  )
  expect(double.problems).toEqual([])
})

test('a batch of which something was rejected is refused, and a part without it is not', async () => {
  await using double = await startOtlpDouble({ rejects: ({ org_seq }) => org_seq === 2 })
  const items = createItems(3)
  expect(await sendTo(double, otlpLogs, [configOf(double), items])).toEqual({
    kind: 'refused',
    error: 'The destination answered 200: 1 log records were rejected. 1 were rejected',
  })
  const rest = await sendTo(double, otlpLogs, [configOf(double), items.slice(2)])
  expect(rest).toEqual({ kind: 'delivered' })
})

test.each([
  ['{"partialSuccess":{"rejectedLogRecords":2}}', 'refused'],
  ['{"partialSuccess":{"rejectedLogRecords":"0","errorMessage":"slow down"}}', 'delivered'],
  ['{"partialSuccess":{}}', 'delivered'],
  ['{}', 'delivered'],
  ['', 'delivered'],
  ['<html>Sign in</html>', 'misconfigured'],
])('200 with %s is %s', async (body, kind) => {
  await using double = await startOtlpDouble()
  double.intervene(() => ({ status: 200, body }))
  const outcome = await sendTo(double, otlpLogs, [configOf(double), createItems(2)])
  expect(outcome).toMatchObject({ kind })
})

test.each([
  [400, 'refused'],
  [413, 'refused'],
  [401, 'misconfigured'],
  [403, 'misconfigured'],
  [404, 'misconfigured'],
  [429, 'failed'],
  [500, 'failed'],
  [502, 'failed'],
  [503, 'failed'],
  [504, 'failed'],
] as const)('%i is %s, and the header is not quoted', async (status, kind) => {
  await using double = await startOtlpDouble()
  const message = `No ${value.slice('Bearer '.length)}!`
  double.intervene(() => ({
    status,
    headers: { 'retry-after': '5' },
    body: JSON.stringify({ code: 3, message }),
  }))
  const outcome = await sendTo(double, otlpLogs, [configOf(double), createItems(1)])
  expect(outcome).toMatchObject({ kind, error: `The destination answered ${status}: No ***!` })
  if (kind === 'failed') expect(outcome).toMatchObject({ retryAfterMs: 5000 })
})

test('the password in a basic header is not quoted', async () => {
  await using double = await startOtlpDouble()
  double.intervene(() => ({ status: 401, body: 'user joe, password hunter22: wrong' }))
  const basic = `Basic ${Buffer.from('joe:hunter22').toString('base64')}`
  const config = configOf(double, { header_value: basic })
  expect(await sendTo(double, otlpLogs, [config, createItems(1)])).toMatchObject({
    kind: 'misconfigured',
    error: 'The destination answered 401: user joe, password ***: wrong',
  })
})

test('a wrong header and a header that cannot be sent are the configuration’s fault', async () => {
  await using double = await startOtlpDouble({ header })
  const items = createItems(1)
  const wrong = await sendTo(double, otlpLogs, [configOf(double, { header_value: 'no' }), items])
  expect(wrong).toMatchObject({ kind: 'misconfigured' })
  const host = configOf(double, { header_name: 'Host' })
  expect(await sendTo(double, otlpLogs, [host, items])).toMatchObject({ kind: 'misconfigured' })
  expect(double.received).toEqual([])
})
