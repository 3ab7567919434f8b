import { AzureMonitorConfig } from '@gatehouse/contract/exports/sink-config'
import { startAzureDouble } from '@gatehouse/tools/destinations/azure-monitor'
import { expect, test } from 'vitest'

import type { ExportItem } from '#exports/destinations/destination.ts'
import { openDeps } from '#exports/destinations/testing/open-deps.ts'
import { createCheckpoint, createItem } from '#exports/destinations/testing/records.ts'

import { createAzureMonitor } from './azure-monitor.ts'

const configured = {
  dcr_immutable_id: 'dcr-0123456789abcdef0123456789abcdef',
  stream_name: 'Custom-PolicyGatewayAudit',
  tenant_id: '11111111-2222-3333-4444-555555555555',
  client_id: '66666666-7777-8888-9999-000000000000',
  client_secret: 'client~secret+/=',
}

async function open(config: Record<string, unknown> = {}) {
  const clock = { nowMs: Date.parse('2026-03-05T12:00:00Z') }
  const now = () => new Date(clock.nowMs)
  const double = await startAzureDouble({ now })
  const deps = openDeps([double], now)
  const azureMonitor = createAzureMonitor({ loginUrl: double.endpoint })
  const read = (more: Record<string, unknown> = {}) =>
    AzureMonitorConfig.parse({ endpoint: double.endpoint, ...configured, ...config, ...more })
  const send = (batch: readonly ExportItem[], more?: Record<string, unknown>) =>
    azureMonitor.send(read(more), batch, deps)
  const stop = async () => {
    await deps[Symbol.asyncDispose]()
    await double[Symbol.asyncDispose]()
  }
  return { clock, double, deps, send, [Symbol.asyncDispose]: stop }
}

test('records become rows with the time of the event', async () => {
  await using opened = await open()
  const batch = [createItem(1), createItem(2, { payload: null }), createCheckpoint(2)]
  expect(await opened.send(batch)).toEqual({ kind: 'delivered' })
  expect(opened.double.received).toEqual(
    batch.map(({ record }) => ({ TimeGenerated: record.created_at, ...record })),
  )
  expect(opened.deps.calls[1]?.headers).toMatchObject({ 'content-encoding': 'gzip' })
  expect(opened.double.problems).toEqual([])
})

test('a token is used until five minutes before its end', async () => {
  await using opened = await open()
  await opened.send([createItem(1)])
  opened.clock.nowMs += (3599 - 301) * 1000
  await opened.send([createItem(2)])
  expect(opened.double.tokensGiven()).toBe(1)
  opened.clock.nowMs += 1000
  await opened.send([createItem(3)])
  expect(opened.double.tokensGiven()).toBe(2)
  expect(opened.double.received).toHaveLength(3)
  expect(opened.double.problems).toEqual([])
})

test('a token is not used for who has another secret', async () => {
  await using opened = await open()
  await opened.send([createItem(1)])
  const outcome = await opened.send([createItem(2)], { client_secret: 'guessed' })
  expect(outcome).toMatchObject({ kind: 'misconfigured' })
  expect(opened.double.received).toHaveLength(1)
})

test('a token that was revoked is replaced once', async () => {
  await using opened = await open()
  await opened.send([createItem(1)])
  opened.double.revokeTokens()
  expect(await opened.send([createItem(2)])).toEqual({ kind: 'delivered' })
  expect(opened.double.tokensGiven()).toBe(2)
  opened.double.intervene(({ url }) =>
    url.pathname.startsWith('/dataCollectionRules') ? { status: 401 } : undefined,
  )
  const calls = opened.deps.calls.length
  expect(await opened.send([createItem(3)])).toMatchObject({ kind: 'misconfigured' })
  expect(opened.deps.calls.length - calls).toBe(3) // refused, a new token, refused again
})

test.each([
  ['a wrong secret', { client_secret: 'wrong-secret' }, 'AADSTS7000215'],
  ['an unknown client', { client_id: 'other' }, 'AADSTS700016'],
  ['an unknown tenant', { tenant_id: 'other' }, 'AADSTS90002'],
  ['a wrong scope', { token_scope: 'https://other/.default' }, 'AADSTS70011'],
  ['an unknown rule', { dcr_immutable_id: 'dcr-other' }, "'dcr-other' not found"],
  ['an unknown stream', { stream_name: 'Custom-Other' }, 'InvalidStream'],
])('%s is named', async (_, config, text) => {
  await using opened = await open(config)
  const outcome = await opened.send([createItem(1)])
  expect(outcome).toMatchObject({ kind: 'misconfigured', error: expect.stringContaining(text) })
  expect(JSON.stringify(outcome)).not.toMatch(/wrong-secret|Trace|\\[nr]/)
  expect(opened.double.received).toEqual([])
})

test.each([
  [400, 'refused'],
  [403, 'misconfigured'],
  [404, 'misconfigured'],
  [413, 'refused'],
  [429, 'failed'],
  [500, 'failed'],
  [200, 'misconfigured'],
])('%i of the ingestion is %s', async (status, kind) => {
  await using opened = await open()
  opened.double.intervene(({ url, headers }) => {
    if (!url.pathname.startsWith('/dataCollectionRules')) return undefined
    const message = `no ${configured.client_secret} ${headers.authorization}`
    const body = JSON.stringify({ error: { code: 'Code', message } })
    return { status, headers: { 'retry-after': '20' }, body }
  })
  const outcome = await opened.send([createItem(1)])
  expect(outcome).toMatchObject({ kind })
  expect(JSON.stringify(outcome)).not.toMatch(/client~secret|eyJ0/)
  if (status === 429) expect(outcome).toMatchObject({ retryAfterMs: 20_000 })
})

test.each([
  [429, '{}', 'failed'],
  [500, '<html>', 'failed'],
  [400, '{"error":"temporarily_unavailable"}', 'failed'],
  [200, '{"token_type":"Bearer"}', 'failed'],
  [200, '{"token_type":"Bearer","expires_in":3599,"access_token":"a\\nb"}', 'failed'],
  [404, '', 'misconfigured'],
])('%i %s of the login is %s', async (status, body, kind) => {
  await using opened = await open()
  opened.double.intervene(() => ({ status, body }))
  expect(await opened.send([createItem(1)])).toMatchObject({ kind })
})

test('a record with a member that Azure would cut is refused, and the others arrive', async () => {
  await using opened = await open()
  const fits = 'ä'.repeat(32 * 1024)
  const batch = [
    createItem(1),
    createItem(2, { payload: { text: fits } }),
    createItem(3, { note: fits, other: fits }),
  ]
  expect(await opened.send(batch)).toEqual({
    kind: 'itemised',
    items: [
      { kind: 'delivered' },
      { kind: 'refused', error: expect.stringContaining('payload is longer than 64 KB') },
      { kind: 'delivered' },
    ],
  })
  expect(opened.double.received.map((row) => row['org_seq'])).toEqual([1, 3])
  expect(opened.double.problems).toEqual([])
  const calls = opened.deps.calls.length
  expect(await opened.send([batch[1]!])).toMatchObject({ kind: 'itemised' })
  expect(opened.deps.calls.length).toBe(calls)
})

test('the largest batch is below the limit of a call', async () => {
  await using opened = await open()
  const { limits } = createAzureMonitor()
  const size = createItem(1, { note: '' }).json.length
  const note = 'x'.repeat(limits.bytesMax / limits.itemsMax - size - 10)
  const batch = Array.from({ length: limits.itemsMax }, (_, at) => createItem(at + 1, { note }))
  const bytes = batch.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)
  expect(bytes).toBeGreaterThan(limits.bytesMax * 0.98)
  expect(await opened.send(batch)).toEqual({ kind: 'delivered' })
  expect(opened.double.problems).toEqual([])
})
