import { setTimeout as sleep } from 'node:timers/promises'

import { readCredits } from '@gatehouse/contract/credits'
import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { expect, test, vi } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { operator } from '#audit/event.ts'
import { grantCredits, recordPayment } from '#credits/payments/payments.ts'
import { chargeCall } from '#testing/ledger.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { createDatabaseProxy, createProjectKey, createTestClock } from '#testing/test-gateway.ts'

async function prepare(environment: Record<string, string> = {}) {
  const clock = createTestClock()
  const api = await createTestApi({ now: clock.now, environment })
  const { house, organization } = api
  const { value } = await createProjectKey(house, organization)
  const deps = { ...house, by: operator }
  await recordPayment(organization.organizationId, { id: 'pay_1', amount: 20_000_001n }, deps)
  const read = async (credential = value) => {
    const { status, headers, body } = await api.send(readCredits, { credential })
    return { status, retryAfter: headers['retry-after'], body: body as unknown }
  }
  return { ...api, ...organization, clock, deps, read, key: value }
}

const balance = (total_credits: number, total_usage: number, remaining_credits: number | null) => ({
  data: { total_credits, total_usage, remaining_credits },
})

test('200: what was paid and granted, what was used, and the balance with what calls hold of it', async () => {
  const { read, house, organizationId, deps } = await prepare()
  await grantCredits(organizationId, { id: 'gift_1', amount: 1_000_000n }, deps)
  const { amount } = await chargeCall(house.db, organizationId)
  await house.db.updateTable('credit_account').set({ held: 500 }).execute()
  const { status, body } = await read()
  expect(status).toBe(200)
  const used = Number(amount)
  expect(body).toEqual(balance(21.000_001, used / 1_000_000, 21_000_001 - used))
})

test.for(['metered', 'off'])(
  '200 with BILLING=%s: no credits remain to be used',
  async (BILLING) => {
    const { read } = await prepare({ BILLING })
    const { status, body } = await read()
    expect([status, body]).toEqual([200, balance(20.000_001, 0, null)])
  },
)

test('200: every organization its own', async () => {
  const { read, house, key } = await prepare()
  const other = await createOrganization('Other Ltd', house)
  const { value } = await createProjectKey(house, other)
  expect((await read(value)).body).toEqual(balance(0, 0, 0))
  expect((await read(key)).body).toEqual(balance(20.000_001, 0, 20_000_001))
})

test('401: an administrator key, or a token', async () => {
  const { read, adminKey } = await prepare()
  for (const credential of [adminKey, 'eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.x']) {
    const { status, body } = await read(credential)
    expect(status).toBe(401)
    expect(body).toMatchObject({
      error: { type: 'invalid_request_error', code: 'invalid_api_key' },
    })
  }
})

test('403: a key without the permission', async () => {
  const { read, house, organization } = await prepare()
  const { value } = await createProjectKey(house, organization, { permissions: ['model.invoke'] })
  const { status, body } = await read(value)
  expect(status).toBe(403)
  expect(body).toMatchObject({ error: { code: 'permission_denied' } })
})

test('429: the 61st read of a key within a minute, as OpenAI says it', async () => {
  const { read, house, organization } = await prepare()
  for (let count = 0; count < 60; count++) expect((await read()).status).toBe(200)
  const { status, retryAfter, body } = await read()
  expect([status, retryAfter]).toEqual([429, expect.stringMatching(/^[1-9]\d?$/)])
  expect(body).toEqual({
    error: {
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      param: null,
      message: expect.stringContaining('60') as string,
    },
  })
  const { value } = await createProjectKey(house, organization)
  expect((await read(value)).status).toBe(200)
})

test('503: the database is away and the copy more than 5 s old; then it is back', async () => {
  await using database = await createTestDatabase()
  await using proxy = await createDatabaseProxy(database.url)
  const { read, clock, house } = await prepare({ DATABASE_URL: proxy.url })
  const expected = balance(20.000_001, 0, 20_000_001)
  // Keys are looked up again after the first poll, and after the change that the payment announced.
  await vi.waitUntil(house.follower.lastPollAt, { timeout: 5000, interval: 5 })
  house.follower.wake()
  await sleep(500)
  expect((await read()).body).toEqual(expected)
  await proxy.shut()
  clock.pass(5000)
  await house.credits.balances.refresh() // lost
  expect((await read()).body).toEqual(expected)
  clock.pass(1)
  const answers: Awaited<ReturnType<typeof read>>[] = []
  const ratio = await waitingRatio('given up', 500, async () => answers.push(await read()))
  expect(ratio).toBeLessThan(3)
  const [{ status, retryAfter, body }] = answers as [(typeof answers)[number]]
  expect([status, retryAfter]).toEqual([503, '2'])
  expect(body).toMatchObject({
    error: { type: 'server_error', code: 'credit_balance_unavailable' },
  })
  await proxy.reopen()
  await expect.poll(async () => (await read()).status, { timeout: 5000 }).toBe(200)
})

test('a change through one process is seen by another within 5 s, refreshed or not', async () => {
  const { read, clock, house, organizationId } = await prepare()
  await read()
  const { amount } = await chargeCall(house.db, organizationId) // as another process does
  clock.pass(5001)
  const left = 20_000_001 - Number(amount)
  expect((await read()).body).toMatchObject({ data: { remaining_credits: left } })
  await chargeCall(house.db, organizationId)
  clock.pass(2000)
  await house.credits.balances.refresh()
  const { body } = await read()
  expect(body).toMatchObject({ data: { remaining_credits: left - Number(amount) } })
  const settled = (body as { data: { total_usage: number } }).data.total_usage
  expect(settled).toBe((Number(amount) * 2) / 1_000_000)
})
