import { createHash } from 'node:crypto'

import {
  deletePolicy,
  pausePolicy,
  type Policy,
  publishPolicy,
  resumePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import {
  type PolicyExample,
  type PolicyExamples,
  readPolicyExamples,
  replacePolicyExamples,
} from '@gatehouse/contract/policy-evaluation'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createPolicyApi } from '#testing/policy-calls.ts'

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

const must: PolicyExample = {
  text: 'Weapons: one weapon.',
  direction: 'request',
  expect: 'must_match',
}
const mustNot: PolicyExample = { text: 'Flowers.', direction: 'response', expect: 'must_not_match' }

async function replace(policy: { id: string; revision: number }, examples: PolicyExample[]) {
  const answer = await house.send(replacePolicyExamples, policy, { body: { examples } })
  return { ...answer, examples: answer.body as unknown as PolicyExamples }
}

/** The same policy after its examples were replaced. */
async function withExamples(policy: Policy, ...examples: PolicyExample[]) {
  expect((await replace(policy, examples)).status).toBe(200)
  return house.read(policy)
}

const read = async (policy: { id: string }) =>
  (await house.api.send(readPolicyExamples, { params: { policy_id: policy.id } }))
    .body as unknown as PolicyExamples

const headers = async () => {
  const rows = await house.api.db.selectFrom('event').selectAll().orderBy('seq').execute()
  return rows.map((row) => ({
    ...(row.header as Record<string, unknown>),
    payload: row.payload?.toString(),
  }))
}

test('200: a new policy has none; PUT replaces all of them, in their order, and raises the revision', async () => {
  const policy = await house.create()
  const object = 'organization.policy.examples'
  expect(await read(policy)).toEqual({ object, policy_id: policy.id, revision: 1, examples: [] })
  const first = await replace(policy, [must, mustNot, must])
  const expected = { object, policy_id: policy.id, revision: 2, examples: [must, mustNot, must] }
  expect([first.status, first.body]).toEqual([200, expected])
  expect(await read(policy)).toEqual(expected)
  await replace({ ...policy, revision: 2 }, [mustNot])
  expect(await read(policy)).toEqual({ ...expected, revision: 3, examples: [mustNot] })
  expect(await house.read(policy)).toMatchObject({ revision: 3, draft: policy.draft })
})

test('the event has the number of examples and their hash, and no text', async () => {
  await replace(await house.create(), [must])
  const event = (await headers()).at(-1)!
  const canonical = `[{"direction":"request","expect":"must_match","text":"${must.text}"}]`
  expect(event).toMatchObject({
    action: 'updated',
    examples: 1,
    examples_sha256: createHash('sha256').update(canonical).digest('hex'),
  })
  expect(JSON.stringify(event)).not.toContain(must.text)
})

test('409: a stale revision changes nothing', async () => {
  const policy = await house.create()
  await replace(policy, [must])
  const stale = await replace(policy, [])
  expect([stale.status, stale.body.error.code]).toEqual([409, 'revision_conflict'])
  expect(stale.body.error.param).toBe('body.revision')
  expect((await read(policy)).examples).toEqual([must])
})

test('200 examples of 20,000 characters are the most, and 422 beyond', async () => {
  const policy = await house.create()
  const many = Array.from({ length: 200 }, () => mustNot)
  expect((await replace(policy, many)).status).toBe(200)
  const at = { id: policy.id, revision: 2 }
  const refused = async (examples: PolicyExample[]) => {
    const { status, body } = await replace(at, examples)
    return [status, body.error.param]
  }
  expect(await refused([...many, mustNot])).toEqual([422, 'body.examples'])
  const long = { ...must, text: 'x'.repeat(20_001) }
  expect(await refused([long])).toEqual([422, 'body.examples[0].text'])
  const odd = { ...must, expect: 'may_match' } as unknown as PolicyExample
  expect(await refused([odd])).toEqual([422, 'body.examples[0].expect'])
  expect((await replace(at, [{ ...must, text: '💥'.repeat(20_000) }])).status).toBe(200)
})

test('the examples of a deleted policy are deleted', async () => {
  const policy = await withExamples(await house.create(), must)
  await house.send(deletePolicy, policy)
  expect(await house.api.db.selectFrom('policy_example').selectAll().execute()).toEqual([])
})

type Refusal = { code: string; param: string | null; message: string; failing?: unknown }

async function publish(policy: { id: string; revision: number }, body: object = {}) {
  const answer = await house.send(publishPolicy, policy, { body })
  return { status: answer.status, error: answer.body.error as Refusal | undefined }
}

test('409: a draft whose examples fail is not published, and the answer lists them', async () => {
  const wrong = [
    { ...must, text: 'Flowers.' },
    { ...mustNot, text: 'weapon' },
  ]
  const policy = await withExamples(await house.create(), must, ...wrong, mustNot)
  const { status, error } = await publish(policy)
  expect([status, error?.code]).toEqual([409, 'examples_failing'])
  expect(error?.failing).toEqual([
    { index: 1, expect: 'must_match', score: 0 },
    { index: 2, expect: 'must_not_match', score: 10_000 },
  ])
  expect(JSON.stringify(error)).not.toContain('Flowers')
  expect(await house.read(policy)).toEqual(policy)
})

test('at most 20 failing examples are listed', async () => {
  const failing = Array.from({ length: 30 }, () => ({ ...must, text: 'Flowers.' }))
  const policy = await withExamples(await house.create(), ...failing)
  expect((await publish(policy)).error?.failing).toHaveLength(20)
})

test('200: a draft whose examples pass is published, without facts about force', async () => {
  const policy = await withExamples(await house.create({ mode: 'enforcing' }), must, mustNot)
  expect((await publish(policy)).status).toBe(200)
  const event = (await headers()).at(-1)!
  expect(event).toMatchObject({ action: 'published' })
  expect(Object.keys(event)).not.toContain('force')
  expect(Object.keys(event)).not.toContain('reason')
})

test('200: with force and a reason failing examples do not count, and the event says so', async () => {
  const policy = await withExamples(await house.create(), { ...must, text: 'Flowers.' })
  const forced = { force: true, reason: 'Incident 7.' }
  expect((await publish(policy, forced)).status).toBe(200)
  expect((await headers()).at(-1)).toMatchObject({ action: 'published', ...forced })
})

test('422: force needs a reason', async () => {
  const policy = await house.create()
  const refused = async (body: object) => {
    const { status, error } = await publish(policy, body)
    return [status, error?.param]
  }
  expect(await refused({ force: true })).toEqual([422, 'body.reason'])
  expect(await refused({ force: true, reason: ' ' })).toEqual([422, 'body.reason'])
  expect(await refused({ force: true, reason: 'x'.repeat(501) })).toEqual([422, 'body.reason'])
  expect(await refused({ force: 'yes', reason: 'x' })).toEqual([422, 'body.force'])
  expect((await publish(policy, { force: false })).status).toBe(200)
})

const judged = { rule: 'Be kind.', mode: 'enforcing' } as const

test('409: an enforcing rule that nothing here can evaluate is not published, with force or without', async () => {
  for (const rule of ['Be kind.', 'when: pii("CARD") > 0\nBe kind.']) {
    const policy = await house.create({ ...judged, rule })
    for (const body of [{}, { force: true, reason: 'Now.' }]) {
      const { status, error } = await publish(policy, body)
      expect([status, error?.code, error?.param]).toEqual([
        409,
        'draft_not_publishable',
        'draft.rule',
      ])
      expect(error?.message).toContain('which this gateway does not have')
    }
    const monitoring = await house.change(updatePolicy, policy, { mode: 'monitoring' })
    expect((await publish(monitoring)).status).toBe(200)
  }
})

test('409: examples that cannot be tried are not passed over in silence', async () => {
  const policy = await withExamples(await house.create({ rule: 'Be kind.' }), must)
  const { status, error } = await publish(policy)
  expect([status, error?.code]).toEqual([409, 'draft_not_publishable'])
  expect(error?.message).toContain('The examples cannot be tried')
  expect((await publish(policy, { force: true, reason: 'Watching only.' })).status).toBe(200)
})

test('409: an enforcing version that nothing here can evaluate is not resumed', async () => {
  const paused = await house.change(pausePolicy, await house.createIn('enforcing'))
  // As an earlier release published it.
  await sql`alter table policy_version disable trigger all`.execute(house.api.db)
  await sql`update policy_version set rule = 'Be kind.'`.execute(house.api.db)
  const refused = await house.send(resumePolicy, paused)
  expect([refused.status, refused.body.error.code]).toEqual([409, 'policy_not_evaluable'])
  expect(refused.body.error.message).toContain('The rule of version 1 needs a judge model')
  await sql`update policy_version set mode = 'monitoring'`.execute(house.api.db)
  expect((await house.send(resumePolicy, paused)).status).toBe(200)
})

test('the order: 404, revision, nothing to publish, examples', async () => {
  const policy = await withExamples(await house.create(), { ...must, text: 'Flowers.' })
  expect((await publish({ ...policy, revision: 1 })).error?.code).toBe('revision_conflict')
  await publish(policy, { force: true, reason: 'First.' })
  const published = await house.read(policy)
  expect((await publish(published)).error?.code).toBe('no_unpublished_changes')
})
