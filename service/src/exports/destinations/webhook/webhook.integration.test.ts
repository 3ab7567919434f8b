import { WebhookConfig } from '@gatehouse/contract/exports/sink-config'
import { startWebhookDouble } from '@gatehouse/tools/destinations/webhook'
import { expect, test } from 'vitest'

import { createItems, sendTo } from '#exports/destinations/testing/send-to-double.ts'

import { webhook } from './webhook.ts'

const secretOf = (byte: number) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`
const secret = secretOf(200)
/** The double refuses signatures that are not of the last minutes. */
const settings = { now: () => new Date() }

const configOf = ({ endpoint }: { endpoint: string }, members: object = {}) =>
  WebhookConfig.parse({ endpoint, secret, ...members })

test('events arrive in their order, signed', async () => {
  await using double = await startWebhookDouble({ secret, path: '/hooks/audit' })
  const items = createItems(3)
  const config = configOf({ endpoint: `${double.endpoint}/hooks/audit` })
  expect(await sendTo(double, webhook, [config, items], settings)).toEqual({ kind: 'delivered' })
  expect(double.received).toEqual(items.map(({ record }) => record))
  expect(JSON.parse(double.bodies[0] ?? '')).toMatchObject({
    type: 'audit.events',
    timestamp: items[2]?.record.created_at,
  })
  expect(double.problems).toEqual([])
})

test('a batch of a thousand events arrives', async () => {
  await using double = await startWebhookDouble({ secret })
  const sent = sendTo(double, webhook, [configOf(double), createItems(1000)], settings)
  expect(await sent).toEqual({ kind: 'delivered' })
  expect(double.received.map(({ org_seq }) => org_seq)).toEqual(
    Array.from({ length: 1000 }, (_, index) => index + 1),
  )
  expect(double.problems).toEqual([])
})

test('a retry has the id and the body of the first attempt, and every other batch another id', async () => {
  await using double = await startWebhookDouble({ secret })
  const items = createItems(3)
  const later = { now: () => new Date(Date.now() + 60_000) }
  await sendTo(double, webhook, [configOf(double), items], settings)
  await sendTo(double, webhook, [configOf(double), items], later)
  await sendTo(double, webhook, [configOf(double), items.slice(0, 1)], settings)
  await sendTo(double, webhook, [configOf(double), items.slice(1)], settings)
  const [first, second, third, fourth] = double.ids
  expect(second).toBe(first)
  expect(double.bodies[1]).toBe(double.bodies[0])
  expect(new Set([first, third, fourth]).size).toBe(3)
})

test.each([
  [200, 'delivered'],
  [403, 'misconfigured'],
  [500, 'failed'],
] as const)('however much a receiver says, %i is %s', async (status, kind) => {
  await using double = await startWebhookDouble({ secret })
  double.intervene(() => ({ status, body: 'x'.repeat(100_000) }))
  const outcome = await sendTo(double, webhook, [configOf(double), createItems(1)], settings)
  expect(outcome).toMatchObject({ kind })
})

test('another secret is the configuration’s fault', async () => {
  await using double = await startWebhookDouble({ secret: secretOf(1) })
  const outcome = await sendTo(double, webhook, [configOf(double), createItems(1)], settings)
  expect(outcome).toMatchObject({ kind: 'misconfigured', error: expect.stringContaining('401') })
  expect(double.received).toEqual([])
})

test('a signature that is too old is refused: the time is part of it', async () => {
  await using double = await startWebhookDouble({ secret })
  const old = { now: () => new Date(Date.now() - 3_600_000) }
  const outcome = await sendTo(double, webhook, [configOf(double), createItems(1)], old)
  expect(outcome).toMatchObject({ kind: 'misconfigured' })
})

test.each([
  [200, 'delivered'],
  [202, 'delivered'],
  [204, 'delivered'],
  [301, 'misconfigured'],
  [401, 'misconfigured'],
  [404, 'misconfigured'],
  [410, 'misconfigured'],
  [400, 'refused'],
  [413, 'refused'],
  [422, 'refused'],
  [409, 'failed'],
  [429, 'failed'],
  [500, 'failed'],
  [503, 'failed'],
] as const)('%i is %s, and the secret is not quoted', async (status, kind) => {
  await using double = await startWebhookDouble({ secret })
  const body = status === 204 ? '' : `Wrong: ${secret.slice('whsec_'.length)}!`
  double.intervene(() => ({ status, headers: { 'retry-after': '9' }, body }))
  const outcome = await sendTo(double, webhook, [configOf(double), createItems(1)], settings)
  expect(outcome.kind).toBe(kind)
  if (outcome.kind !== 'delivered') {
    expect(outcome).toMatchObject({ error: expect.stringContaining(`${status}: Wrong: ***!`) })
  }
  if (kind === 'failed') expect(outcome).toMatchObject({ retryAfterMs: 9000 })
})

test.each(['hang', 'reset'] as const)(
  'a receiver that ends with %s is tried again',
  async (end) => {
    await using double = await startWebhookDouble({ secret })
    double.intervene(() => end)
    const quickly = { ...settings, deadlineMs: 500 }
    const outcome = await sendTo(double, webhook, [configOf(double), createItems(1)], quickly)
    expect(outcome).toMatchObject({ kind: 'failed' })
  },
)
