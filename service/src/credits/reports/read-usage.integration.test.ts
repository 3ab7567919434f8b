import { readUsage, type UsageItem } from '@gatehouse/contract/credits'
import { createProject, updateProject } from '@gatehouse/contract/project'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { operator } from '#audit/event.ts'
import { recordPayment } from '#credits/payments/payments.ts'
import { chargeCall } from '#testing/ledger.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

/** The clock says 2026-06-01, noon. */
async function prepare() {
  const api = await createTestApi({ now: createTestClock().now })
  const { house, organization } = api
  const { organizationId } = organization
  await recordPayment(
    organizationId,
    { id: 'pay_1', amount: 100_000_000n },
    { ...house, by: operator },
  )
  const read = async (query: Record<string, string> = {}, credential = organization.adminKey) => {
    const { status, body } = await api.send(readUsage, { query, credential })
    const { data, error, ...envelope } = body as unknown as Body
    return { status, data: data ?? [], envelope, code: error?.code, param: error?.param }
  }
  const charge = (day: string, call: Parameters<typeof chargeCall>[2] = {}) =>
    chargeCall(api.db, organizationId, { ...call, at: new Date(`${day}T12:00:00Z`) })
  return { ...api, organizationId, read, charge }
}
type Body = {
  data?: UsageItem[]
  has_more: boolean
  last_id: string | null
  error?: { code: string; param: string | null }
}

const all = { group_by: 'model,key,project,day' }

test('200: sums by day, of the last 30 days by default', async () => {
  const { read, charge } = await prepare()
  const { amount } = await charge('2026-06-01', { model: 'one' })
  await charge('2026-06-01', { model: 'two', keyId: 'key_2' })
  await charge('2026-05-03')
  await charge('2026-05-02')
  const { data, envelope } = await read()
  expect(data.map(({ day, requests }) => [day, requests])).toEqual([
    ['2026-05-03', 1],
    ['2026-06-01', 2],
  ])
  const credits = Number(amount) * 2
  expect(data[1]).toEqual({
    id: envelope.last_id,
    object: 'organization.credits.usage',
    day: '2026-06-01',
    label: null,
    project_id: null,
    key_id: null,
    model: null,
    requests: 2,
    input_tokens: 2000,
    output_tokens: 200,
    credits,
    cost_usd: credits / 1_000_000,
  })
})

test('200: both days are included, and every group can be asked for in any order', async () => {
  const { read, charge } = await prepare()
  for (const day of ['2026-01-01', '2026-01-02', '2026-01-03']) {
    await charge(day, { model: 'b' })
    await charge(day, { model: 'a', projectId: 'proj_2', keyId: 'key_2' })
    await charge(day, { model: 'a', projectId: null, keyId: 'https://issuer.example|user' })
  }
  const days = { from: '2026-01-02', to: '2026-01-03' }
  const byModel = await read({ ...days, group_by: 'model' })
  expect(byModel.data.map(({ day, model, requests }) => [day, model, requests])).toEqual([
    [null, 'a', 4],
    [null, 'b', 2],
  ])
  const each = await read({ ...days, ...all })
  expect(each.data.map((item) => [item.day, item.project_id, item.key_id, item.model])).toEqual(
    ['2026-01-02', '2026-01-03'].flatMap((day) => [
      [day, null, 'https://issuer.example|user', 'a'],
      [day, 'proj_1', 'key_1', 'b'],
      [day, 'proj_2', 'key_2', 'a'],
    ]),
  )
  const count = async (query: Record<string, string>) =>
    (await read({ ...days, ...query })).data.reduce((sum, { requests }) => sum + requests, 0)
  expect(await count({ project_id: 'proj_2' })).toBe(2)
  expect(await count({ key_id: 'https://issuer.example|user' })).toBe(2)
  expect(await count({ model: 'a' })).toBe(4)
  expect(await count({ model: 'a', key_id: 'key_1' })).toBe(0)
})

test.each(['asc', 'desc'] as const)(
  '200: pages in order, without gap or duplicate (%s)',
  async (order) => {
    const { read, charge } = await prepare()
    for (const day of ['2026-05-30', '2026-05-31', '2026-06-01']) {
      for (const model of ['a', 'b', 'ä']) await charge(day, { model })
    }
    for (const group_by of ['day', 'model', 'day,model', all.group_by]) {
      const whole = (await read({ group_by, order })).data
      const seen: UsageItem[] = []
      let after: string | null = null
      do {
        const page = await read({ group_by, order, limit: '2', ...(after && { after }) })
        expect(page.status).toBe(200)
        seen.push(...page.data)
        after = page.envelope.has_more ? page.envelope.last_id : null
      } while (after)
      expect(seen).toEqual(whole)
      expect(whole.reduce((sum, { requests }) => sum + requests, 0)).toBe(9)
    }
  },
)

test('200: sums by a label, with the calls of projects that do not have it, and filters by labels', async () => {
  const { read, charge, send } = await prepare()
  const projectOf = async (labels: object) =>
    (await send(createProject, { body: { name: 'Labelled', labels } })).body.id
  const search = await projectOf({ team: 'search', cost_center: '4711' })
  const other = await projectOf({ team: 'search', cost_center: '0815' })
  const desk = await projectOf({ team: 'Help desk' })
  const without = await projectOf({ cost_center: '4711' })
  for (const projectId of [search, search, other, desk, without, null]) {
    await charge('2026-06-01', { projectId })
  }
  const sums = async (query: Record<string, string>) => {
    const { data } = await read(query)
    return data.map(({ label, requests }) => [label, requests])
  }
  const byTeam = [
    [null, 2],
    ['Help desk', 1],
    ['search', 3],
  ]
  expect(await sums({ group_by: 'label:team' })).toEqual(byTeam)
  expect(await sums({ group_by: 'label:team', order: 'desc' })).toEqual(byTeam.toReversed())
  expect(await sums({ group_by: 'label:region' })).toEqual([[null, 6]])
  expect(await sums({ group_by: 'label:team', label: 'cost_center=4711' })).toEqual([
    [null, 1],
    ['search', 2],
  ])
  expect(await sums({ label: 'team=Help desk' })).toEqual([[null, 1]])
  expect(await sums({ label: 'team=none' })).toEqual([])
  const first = await read({ group_by: 'model,label:team,day', limit: '1' })
  expect(first.data).toMatchObject([{ day: '2026-06-01', label: null, model: expect.any(String) }])
  const rest = await read({ group_by: 'day,model,label:team', after: first.envelope.last_id ?? '' })
  expect(rest.data.map(({ label }) => label)).toEqual(['Help desk', 'search'])
  const elsewhere = { group_by: 'day,model,label:cost_center', after: first.envelope.last_id ?? '' }
  expect((await read(elsewhere)).code).toBe('invalid_cursor')
  // A project's labels are those of now.
  await send(updateProject, { params: { project_id: desk }, body: { labels: { team: 'search' } } })
  expect(await sums({ group_by: 'label:team' })).toEqual([
    [null, 2],
    ['search', 4],
  ])
})

test.each([
  [{ group_by: 'label' }, 'query.group_by'],
  [{ group_by: 'label:' }, 'query.group_by'],
  [{ group_by: 'label:a b' }, 'query.group_by'],
  [{ group_by: 'label:a,label:b' }, 'query.group_by'],
  [{ label: 'team' }, 'query.label'],
  [{ label: '=search' }, 'query.label'],
  [{ label: 'team=' }, 'query.label'],
])('422: %j is no label', async (query, param) => {
  const { read } = await prepare()
  expect(await read(query as Record<string, string>)).toMatchObject({
    status: 422,
    code: 'invalid_parameter',
    param,
  })
})

test('200: another organization sees nothing of it', async () => {
  const { read, charge, house } = await prepare()
  const other = await createOrganization('Other Ltd', house)
  await charge('2026-06-01')
  expect((await read(all, other.adminKey)).data).toEqual([])
})

test('400: a cursor of another grouping, or none at all', async () => {
  const { read, charge } = await prepare()
  await charge('2026-06-01', { model: 'a' })
  const [item] = (await read({ group_by: 'model' })).data
  const after = item?.id ?? ''
  expect((await read({ group_by: 'model', after })).data).toEqual([])
  const forged = (...parts: unknown[]) =>
    `usage_${Buffer.from(JSON.stringify(parts)).toString('base64url')}`
  const wrong: [cursor: string, groups: string][] = [
    [after, 'day'],
    [after, 'key'],
    [`${after}A`, 'model'],
    ['usage_', 'model'],
    ['nothing', 'model'],
    [forged('day', '2026-02-30'), 'day'],
    [forged('day', "'; drop table usage_day"), 'day'],
    [forged('model', 'a\0b'), 'model'],
    [forged('model', 'a', 'b'), 'model'],
    [forged('model', 7), 'model'],
  ]
  for (const [cursor, group_by] of wrong) {
    const answer = await read({ group_by, after: cursor })
    expect([cursor, answer.status, answer.code]).toEqual([cursor, 400, 'invalid_cursor'])
  }
})

test('422: days and groups that cannot be', async () => {
  const { read } = await prepare()
  const wrong: [query: Record<string, string>, param: string][] = [
    [{ from: '2026-06-02' }, 'query.from'], // tomorrow
    [{ from: '2026-01-02', to: '2026-01-01' }, 'query.from'],
    [{ from: '2025-01-01', to: '2026-01-02' }, 'query.from'],
    [{ from: '2026-02-30' }, 'query.from'],
    [{ to: '2026-01-01T00:00:00Z' }, 'query.to'],
    [{ to: '0000-01-01' }, 'query.to'],
    [{ to: '1999-12-31' }, 'query.to'],
    [{ group_by: '' }, 'query.group_by'],
    [{ group_by: 'day,hour' }, 'query.group_by'],
    [{ group_by: 'day,' }, 'query.group_by'],
    [{ limit: '0' }, 'query.limit'],
  ]
  for (const [query, param] of wrong) {
    const answer = await read(query)
    expect([query, answer.status, answer.param]).toEqual([query, 422, param])
  }
  expect((await read({ from: '2025-01-01', to: '2026-01-01' })).status).toBe(200) // 366 days
  expect((await read({ to: '9999-12-31' })).status).toBe(200)
  expect((await read({ to: '2000-01-01' })).status).toBe(200)
})
