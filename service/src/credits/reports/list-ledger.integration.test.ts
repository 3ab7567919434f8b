import { type LedgerEntry, listLedgerEntries } from '@gatehouse/contract/credits'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { operator } from '#audit/event.ts'
import { grantCredits, recordPayment } from '#credits/payments/payments.ts'
import { refundPayment, undoRefundsIn } from '#credits/payments/refunds.ts'
import { transact } from '#platform/transaction.ts'
import { chargeCall } from '#testing/ledger.ts'
import { createTestApi } from '#testing/test-api.ts'

async function prepare() {
  const api = await createTestApi()
  const { house, organization } = api
  const { organizationId } = organization
  await recordPayment(
    organizationId,
    { id: 'pay_1', amount: 10_000_000n },
    { ...house, by: operator },
  )
  const list = async (query: Record<string, string> = {}, credential = organization.adminKey) => {
    const { status, body } = await api.send(listLedgerEntries, { query, credential })
    const { data, error, ...envelope } = body as unknown as Body
    return { status, data: data ?? [], envelope, code: error?.code, param: error?.param }
  }
  const charge = (call: Parameters<typeof chargeCall>[2] = {}) =>
    chargeCall(api.db, organizationId, call)
  return { ...api, organizationId, list, charge }
}
type Body = {
  data?: LedgerEntry[]
  has_more: boolean
  last_id: string | null
  error?: { code: string; param: string | null }
}

test('200: an entry has all that is needed to compute its charge again', async () => {
  const { list, charge } = await prepare()
  const { id, amount } = await charge({
    inputTokens: 12_345,
    outputTokens: 678,
    projectId: 'proj_x',
  })
  const { data } = await list({ kind: 'usage' })
  expect(data).toEqual([
    {
      id,
      object: 'organization.credits.ledger_entry',
      kind: 'usage',
      request_id: id,
      amount: Number(amount),
      debit: 'wallet',
      credit: 'revenue',
      project_id: 'proj_x',
      key_id: 'key_1',
      model: 'model-1',
      usage_source: 'upstream',
      input_tokens: 12_345,
      output_tokens: 678,
      cached_input_tokens: 100,
      cache_write_tokens: 10,
      cache_write_1h_tokens: 0,
      web_searches: 0,
      price_version: expect.stringMatching(/^price_/) as string,
      prices: {
        input: '3',
        cached_input: '0.3',
        cache_write: '3.75',
        cache_write_1h: null,
        output: '15',
        web_search: null,
      },
      created_at: expect.any(Number) as number,
    },
  ])
  const [entry] = data
  if (!entry?.prices) throw new Error('no prices')
  const { prices } = entry
  const fresh = 12_345 - 100 - 10
  const usd = [
    [fresh, prices.input] as const,
    [100, prices.cached_input] as const,
    [10, prices.cache_write] as const,
    [678, prices.output] as const,
  ].reduce((sum, [tokens, price]) => sum + tokens * Number(price), 0)
  expect(entry.amount).toBe(Math.ceil(usd))
})

test('200: payments, grants and refunds belong to no call; write-offs of calls do', async () => {
  const { list, charge, house, organizationId } = await prepare()
  const deps = { ...house, by: operator }
  await grantCredits(organizationId, { id: 'gift_1', amount: 5n }, deps)
  const { id } = await charge({ writtenOff: 100n })
  await charge({ kind: 'late_usage', id: 'req_late', writtenOff: 1n })
  await house.db.updateTable('credit_account').set({ held: 9_000_000 }).execute()
  const back = { id: 'back_1', amount: 10_000_000n, paymentId: 'pay_1' }
  await refundPayment(organizationId, back, deps)
  const undone = { ...back, id: 'undone_1' }
  await transact(house.db, (tx) => undoRefundsIn(tx, organizationId, undone, deps))
  const { data } = await list()
  expect(data.map((entry) => [entry.id, entry.request_id, entry.debit, entry.credit])).toEqual([
    ['pay_1', null, 'topup', 'wallet'],
    ['gift_1', null, 'promo', 'wallet'],
    [id, id, 'wallet', 'revenue'],
    [`${id}:writeoff`, id, 'writeoff', 'revenue'],
    ['req_late:late', 'req_late', 'wallet', 'revenue'],
    ['req_late:late:writeoff', 'req_late', 'writeoff', 'revenue'],
    ['back_1', null, 'wallet', 'refund'],
    ['back_1:writeoff', null, 'writeoff', 'refund'],
    ['undone_1', null, 'refund', 'wallet'],
    ['undone_1:writeoff', null, 'refund', 'writeoff'],
  ])
  const [payment] = data
  expect(payment).toMatchObject({ amount: 10_000_000, prices: null, model: null, key_id: null })
  expect(payment).toMatchObject({ input_tokens: null, usage_source: null, price_version: null })
})

test.each(['asc', 'desc'] as const)(
  '200: pages have no gap and no duplicate while entries are added (%s)',
  async (order) => {
    const { list, charge } = await prepare()
    const at = new Date(Date.now() - 60_000)
    for (let made = 0; made < 12; made++) await charge(made < 8 ? { at } : {}) // at one moment, most of them
    const before = (await list({ limit: '100', order })).data.map(({ id }) => id)
    const seen: string[] = []
    let after: string | null = null
    let added = 0
    do {
      const page = await list({ limit: '5', order, ...(after && { after }) })
      seen.push(...page.data.map(({ id }) => id))
      after = page.envelope.has_more ? page.envelope.last_id : null
      if (added++ < 3) await Promise.all([charge(), charge()])
    } while (after)
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.slice(0, before.length)).toEqual(before)
    // Ascending pages also have the entries that were added meanwhile.
    expect(seen.length).toBe(order === 'asc' ? before.length + 6 : before.length)
  },
)

test('200: filters by project, kind and time; from is included, to is not', async () => {
  const { list, charge } = await prepare()
  const times = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z', '2026-01-02T00:00:00Z']
  for (const [index, time] of times.entries()) {
    await charge({ id: `req_${index}`, at: new Date(time), projectId: `proj_${index % 2}` })
  }
  await charge({ id: 'req_3', kind: 'late_usage', projectId: 'proj_1' })
  const ids = async (query: Record<string, string>) => (await list(query)).data.map(({ id }) => id)
  expect(await ids({ project_id: 'proj_1' })).toEqual(['req_1', 'req_3:late'])
  expect(await ids({ kind: 'payment' })).toEqual(['pay_1'])
  expect(await ids({ kind: 'usage' })).toEqual(['req_0', 'req_1', 'req_2'])
  expect(await ids({ project_id: 'proj_1', kind: 'usage' })).toEqual(['req_1'])
  expect(await ids({ project_id: 'proj_unknown' })).toEqual([])
  expect(await ids({ to: '2026-01-02T00:00:00Z' })).toEqual(['req_0', 'req_1'])
  const from = '2026-01-01T00:00:00.001Z'
  expect(await ids({ from, to: '2026-01-02T00:00:00.001Z' })).toEqual(['req_1', 'req_2'])
  expect(await ids({ from: '2026-01-01T01:00:00.001+01:00', to: '2026-01-02T00:00:00Z' })).toEqual([
    'req_1',
  ])
  const ages = { from: '0000-01-01T00:00:00Z', to: '9999-12-31T23:59:59.999999999-23:59' }
  expect(await ids({ ...ages, kind: 'usage' })).toHaveLength(3)
})

test('422: a filter or a page that cannot be', async () => {
  const { list } = await prepare()
  const day = '2026-01-02T00:00:00Z'
  const wrong: [query: Record<string, string>, param: string][] = [
    [{ from: day, to: day }, 'query.to'],
    [{ from: day, to: '2026-01-01T00:00:00Z' }, 'query.to'],
    [{ from: '2026-01-02' }, 'query.from'],
    [{ to: 'yesterday' }, 'query.to'],
    [{ kind: 'gift' }, 'query.kind'],
    [{ limit: '101' }, 'query.limit'],
    [{ order: 'up' }, 'query.order'],
    [{ project_id: '' }, 'query.project_id'],
  ]
  for (const [query, param] of wrong) {
    const answer = await list(query)
    expect([answer.status, answer.code, answer.param]).toEqual([422, 'invalid_parameter', param])
  }
})

test('400: a cursor of another organization, or of nothing', async () => {
  const { list, charge, house } = await prepare()
  const other = await createOrganization('Other Ltd', house)
  const { id } = await charge()
  expect((await list({ after: id })).status).toBe(200)
  for (const [after, credential] of [
    [id, other.adminKey] as const,
    ['req_0', undefined] as const,
  ]) {
    const answer = await list({ after }, credential)
    expect([answer.status, answer.code, answer.param]).toEqual([
      400,
      'invalid_cursor',
      'query.after',
    ])
  }
})

test('200: another organization sees nothing of it', async () => {
  const { list, charge, house } = await prepare()
  const other = await createOrganization('Other Ltd', house)
  await charge({ projectId: 'proj_1' })
  expect((await list({}, other.adminKey)).data).toEqual([])
  expect((await list({ project_id: 'proj_1' }, other.adminKey)).data).toEqual([])
})
