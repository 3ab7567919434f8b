import {
  pausePolicy,
  publishPolicy,
  restorePolicyVersion,
  resumePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createPolicyApi } from '#testing/policy-calls.ts'

// What the patterns in force of an organization may cost together: 2000 ms for 8 KB.

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

type Answer = { status: number; body: { error?: { code: string } } }
const outcome = ({ status, body: { error } }: Answer) =>
  error ? `${status} ${error.code}` : `${status}`

const slowRule = 'cel: text.matches("alpha.{0,60}omega")'
const create = (changes: object = {}) => house.create({ rule: slowRule, ...changes })

const costsOf = async ({ id }: { id: string }) => {
  const { rows } = await sql<{ costs: number[] | null }>`
    select pattern_costs as costs from policy_version where policy_id = ${id}
    order by version desc limit 1`.execute(house.api.db)
  return rows[0]?.costs ?? null
}

/** As if what a policy has in force had been measured like this. */
async function setCosts({ id }: { id: string }, costs: number[] | null) {
  await house.api.db.transaction().execute(async (tx) => {
    await sql`alter table policy_version disable trigger policy_version_is_immutable`.execute(tx)
    await sql`update policy_version set pattern_costs = ${costs} where policy_id = ${id}`.execute(
      tx,
    )
    await sql`alter table policy_version enable trigger policy_version_is_immutable`.execute(tx)
  })
}

/** Another policy in force, beside which these microseconds are left. */
async function fillUpTo(leftUs: number) {
  const filler = await house.createIn('monitoring', { rule: 'cel: text.matches("filler")' })
  await setCosts(filler, [1_000_000, 1_000_000 - leftUs])
  return filler
}

test('the cost of each pattern is kept with the version, in the order of the rule', async () => {
  const rule = `${slowRule} || text.matches("weapon") || text.contains("gun")`
  const costs = await costsOf(await house.createIn('monitoring', { rule }))
  expect(costs).toHaveLength(2)
  const [slow = 0, quick = 0] = costs ?? []
  expect(quick).toBeGreaterThan(0)
  expect(slow).toBeGreaterThan(10 * quick)
  expect(await costsOf(await house.createIn('monitoring'))).toEqual([])
})

test('409: publishing beyond the sum says how much it is; pausing another policy makes room', async () => {
  const filler = await fillUpTo(1000)
  const policy = await create()
  const refused = await house.send(publishPolicy, policy)
  expect([outcome(refused), refused.headers['x-should-retry']]).toEqual([
    '409 limit_reached',
    'false',
  ])
  expect(refused.body.error).toMatchObject({
    message: expect.stringMatching(/may take 2000 ms together .* would take 20\d\d ms; pause/),
    param: 'draft.rule',
  })
  expect(await house.read(policy)).toEqual(policy)
  // A rule without patterns costs nothing.
  expect(outcome(await house.send(publishPolicy, await house.create()))).toBe('200')
  await house.change(pausePolicy, filler)
  expect(outcome(await house.send(publishPolicy, policy))).toBe('200')
  const resumed = await house.send(resumePolicy, await house.read(filler))
  expect(outcome(resumed)).toBe('409 limit_reached')
})

test('409: restoring a version that would be too much; what costs no more than before can be published', async () => {
  const policy = await house.createIn('monitoring', { rule: slowRule })
  const cheaper = await house.publishNext(policy, 'cel: text.matches("weapon")')
  const filler = await fillUpTo(10)
  const restored = await house.send(restorePolicyVersion, cheaper, { params: { version: '1' } })
  expect(outcome(restored)).toBe('409 limit_reached')
  // The sum is beyond the bound already, as after a setting that was lowered.
  await setCosts(filler, [3_000_000])
  await setCosts(policy, [60_000])
  const edited = await house.change(updatePolicy, cheaper, { rule: slowRule })
  expect(outcome(await house.send(publishPolicy, edited))).toBe('200')
})

test('of many that are published at once, only as many come into force as the sum allows', async () => {
  const first = await house.createIn('monitoring', { rule: slowRule })
  const [costUs = 0] = (await costsOf(first)) ?? []
  const drafts = await Promise.all(Array.from({ length: 6 }, () => create()))
  // Beside the first, for two more of the same and not for three.
  await fillUpTo(Math.round(3.5 * costUs))
  const answers = await Promise.all(drafts.map((draft) => house.send(publishPolicy, draft)))
  expect(answers.map(outcome).toSorted()).toEqual([
    '200',
    '200',
    ...Array.from({ length: 4 }, () => '409 limit_reached'),
  ])
})

test('what an earlier release has published is in force, costs nothing here, and can be resumed', async () => {
  const policy = await house.createIn('enforcing', { rule: slowRule })
  await setCosts(policy, null)
  await fillUpTo(1000)
  const paused = await house.change(pausePolicy, policy)
  expect(outcome(await house.send(resumePolicy, paused))).toBe('200')
})
