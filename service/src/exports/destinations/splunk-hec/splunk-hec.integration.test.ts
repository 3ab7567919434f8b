import { SplunkHecConfig } from '@gatehouse/contract/exports/sink-config'
import { startSplunkDouble } from '@gatehouse/tools/destinations/splunk-hec'
import { expect, test } from 'vitest'

import { createItems, sendTo } from '#exports/destinations/testing/send-to-double.ts'

import { createSplunkHec, splunkHec } from './splunk-hec.ts'

const token = '8a1f6c1e-1b52-4c6c-9a55-0f7c7d1d2e3f'
const quick = createSplunkHec([1, 2, 4, 8])

const configOf = ({ endpoint }: { endpoint: string }, members: object = {}) =>
  SplunkHecConfig.parse({ endpoint, token, ...members })

test('events arrive in their order, compressed, each in an envelope', async () => {
  await using double = await startSplunkDouble({ token, indexes: ['audit'] })
  const items = createItems(3)
  const config = configOf(double, { index: 'audit', host: 'gate' })
  expect(await sendTo(double, splunkHec, [config, items])).toEqual({ kind: 'delivered' })
  expect(double.received).toEqual(items.map(({ record }) => record))
  expect(double.envelopes[0]).toEqual({
    time: 1772359201.001,
    host: 'gate',
    source: 'policy-gateway',
    sourcetype: 'policy_gateway_audit',
    index: 'audit',
  })
  expect(double.problems).toEqual([])
})

test('a batch of a thousand events arrives', async () => {
  await using double = await startSplunkDouble({ token })
  const outcome = await sendTo(double, splunkHec, [configOf(double), createItems(1000)])
  expect(outcome).toEqual({ kind: 'delivered' })
  expect(double.received.map(({ org_seq }) => org_seq)).toEqual(
    Array.from({ length: 1000 }, (_, index) => index + 1),
  )
  expect(double.problems).toEqual([])
})

test('a wrong token and an index that is not allowed are the configuration’s fault', async () => {
  await using double = await startSplunkDouble({ token })
  const items = createItems(2)
  expect(await sendTo(double, splunkHec, [configOf(double, { token: 'other' }), items])).toEqual({
    kind: 'misconfigured',
    error: 'Splunk answered: Invalid token (code 4).',
  })
  expect(await sendTo(double, splunkHec, [configOf(double, { index: 'other' }), items])).toEqual({
    kind: 'misconfigured',
    error: 'Splunk answered: Incorrect index (code 7). The token may not write to this index.',
  })
  const elsewhere = configOf({ endpoint: `${double.endpoint}/elsewhere` })
  expect(await sendTo(double, splunkHec, [elsewhere, items])).toMatchObject({
    kind: 'misconfigured',
  })
  expect(double.received).toEqual([])
})

test.each([
  [503, 9, 'failed'],
  [500, 8, 'failed'],
  [403, 1, 'misconfigured'],
  [401, 2, 'misconfigured'],
  [401, 3, 'misconfigured'],
  [400, 7, 'misconfigured'],
  [400, 10, 'misconfigured'],
  [400, 14, 'misconfigured'],
  [400, 5, 'refused'],
  [400, 6, 'refused'],
  [400, 12, 'refused'],
  [400, 13, 'refused'],
  [400, 15, 'refused'],
  [429, 26, 'failed'],
] as const)('%i with code %i is %s, and the token is not quoted', async (status, code, kind) => {
  await using double = await startSplunkDouble({ token })
  const text = `No: Splunk ${token}\nnot today`
  double.intervene(() => ({ status, body: JSON.stringify({ text, code }) }))
  const outcome = await sendTo(double, splunkHec, [configOf(double), createItems(1)])
  expect(outcome).toMatchObject({
    kind,
    error: expect.stringContaining('No: Splunk *** not today'),
  })
  expect(JSON.stringify(outcome)).not.toContain(token.slice(0, 8))
})

test('a busy collector says when to come back', async () => {
  await using double = await startSplunkDouble({ token })
  const body = JSON.stringify({ text: 'Server is busy', code: 9 })
  double.intervene(() => ({ status: 503, headers: { 'retry-after': '7' }, body }))
  expect(await sendTo(double, splunkHec, [configOf(double), createItems(1)])).toEqual({
    kind: 'failed',
    error: 'The destination answered 503: Server is busy (code 9)',
    retryAfterMs: 7000,
  })
})

test.each(['hang', 'reset'] as const)(
  'a connection that ends with %s is tried again',
  async (end) => {
    await using double = await startSplunkDouble({ token })
    double.intervene(() => end)
    const sent = sendTo(double, splunkHec, [configOf(double), createItems(1)], { deadlineMs: 500 })
    expect(await sent).toMatchObject({ kind: 'failed' })
  },
)

test('200 by something that is no collector is not a success', async () => {
  await using double = await startSplunkDouble({ token })
  double.intervene(() => ({ status: 200, body: '<html>Welcome</html>' }))
  const outcome = await sendTo(double, splunkHec, [configOf(double), createItems(1)])
  expect(outcome).toMatchObject({ kind: 'misconfigured' })
})

test('with `ack`, a batch is delivered when the indexer has acknowledged it', async () => {
  await using double = await startSplunkDouble({ token, ackAfterPolls: 3 })
  const config = configOf(double, { ack: true })
  expect(await sendTo(double, quick, [config, createItems(2)])).toEqual({ kind: 'delivered' })
  expect(double.polls()).toBe(3)
  expect(await sendTo(double, quick, [config, createItems(1)])).toEqual({ kind: 'delivered' })
  expect(double.problems).toEqual([])
})

test('a batch that is acknowledged late is asked for again, and sent again only after minutes', async () => {
  await using double = await startSplunkDouble({ token, ackAfterPolls: 6 })
  const config = configOf(double, { ack: true })
  const hec = createSplunkHec([1, 2])
  const send = (minute: number) =>
    sendTo(double, hec, [config, createItems(1)], { now: () => new Date(minute * 60_000) })
  expect([(await send(0)).kind, (await send(1)).kind, (await send(4)).kind]).toEqual([
    'failed',
    'failed',
    'delivered',
  ])
  expect(double.received).toHaveLength(1)
  expect(double.problems).toEqual([])
  await using silent = await startSplunkDouble({ token, ackAfterPolls: 100 })
  const sendToSilent = (minute: number) =>
    sendTo(silent, hec, [configOf(silent, { ack: true }), createItems(1)], {
      now: () => new Date(minute * 60_000),
    })
  await sendToSilent(0)
  await sendToSilent(5)
  expect(silent.received).toHaveLength(2)
})

test('a batch that is not acknowledged in time has failed', async () => {
  await using double = await startSplunkDouble({ token, ackAfterPolls: 5 })
  const config = configOf(double, { ack: true })
  expect(await sendTo(double, quick, [config, createItems(1)])).toEqual({
    kind: 'failed',
    error: 'The indexer has not acknowledged the batch in time.',
  })
  expect(double.polls()).toBe(4)
})

test('the wait for an acknowledgement ends with the lease', async () => {
  await using double = await startSplunkDouble({ token, ackAfterPolls: 1 })
  const lease = new AbortController()
  double.intervene(({ url }) => {
    if (url.pathname.endsWith('/event')) setTimeout(() => lease.abort(), 100)
    return undefined
  })
  const config = configOf(double, { ack: true })
  const slow = createSplunkHec([60_000])
  const sent = sendTo(double, slow, [config, createItems(1)], { signal: lease.signal })
  expect(await sent).toMatchObject({ kind: 'failed' })
  expect(double.polls()).toBe(0)
})

test('`ack` has to be as the token has it', async () => {
  await using without = await startSplunkDouble({ token })
  const wrongly = await sendTo(without, quick, [configOf(without, { ack: true }), createItems(1)])
  expect(wrongly).toMatchObject({
    kind: 'misconfigured',
    error: expect.stringContaining('`ack` off'),
  })

  await using withAck = await startSplunkDouble({ token, ackAfterPolls: 1 })
  const missing = await sendTo(withAck, quick, [configOf(withAck), createItems(1)])
  expect(missing).toMatchObject({
    kind: 'misconfigured',
    error: expect.stringContaining('`ack` on'),
  })
})

test('an error while waiting for an acknowledgement is explained like others', async () => {
  await using double = await startSplunkDouble({ token, ackAfterPolls: 1 })
  double.intervene(({ url }) =>
    url.pathname.endsWith('/ack') ? { status: 503, headers: { 'retry-after': '3' } } : undefined,
  )
  const sent = sendTo(double, quick, [configOf(double, { ack: true }), createItems(1)])
  expect(await sent).toMatchObject({ kind: 'failed', retryAfterMs: 3000 })
})
