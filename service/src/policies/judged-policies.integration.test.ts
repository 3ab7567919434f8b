import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  type PolicyCreation,
  publishPolicy,
  resumePolicy,
} from '@gatehouse/contract/policy'
import { evaluatePolicy } from '@gatehouse/contract/policy-evaluation'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { describePinned } from '#policies-in-force/in-force.ts'
import { createTestApi } from '#testing/test-api.ts'

/** An API with a judge. */
async function openApi() {
  const folder = await mkdtemp(join(tmpdir(), 'moderation-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'moderation.json')
  const scorers = [{ name: 'scripted', adapter: 'scripted' }]
  await writeFile(file, JSON.stringify({ scorers, judge: { adapter: 'scripted' } }))
  const api = await createTestApi({ environment: () => ({ MODERATION_FILE: file }) })

  async function publish(changes: Partial<PolicyCreation> = {}) {
    const rule = 'Nobody may be rude.'
    const draft = { name: 'Kind', rule, scope: 'organization', mode: 'enforcing', ...changes }
    const { body } = await api.send(createPolicy, { body: draft })
    const params = { policy_id: body.id }
    const answer = await api.send(publishPolicy, { params, body: { revision: 1 } })
    const move = (endpoint: typeof pausePolicy | typeof resumePolicy, revision: number) =>
      api.send(endpoint, { params, body: { revision } })
    const { status } = answer
    const remove = (revision: number) =>
      api.send(deletePolicy, { params, query: { revision: String(revision) } })
    return {
      status,
      remove,
      error: (answer.body as { error?: { code: string; message: string } }).error,
      move,
    }
  }
  return { publish, api, file, scorers }
}

test('enforcing policies whose judge is taken away are counted as such that cannot be evaluated', async () => {
  const { publish, api, file, scorers } = await openApi()
  expect((await publish()).status).toBe(200)
  expect((await publish({ mode: 'monitoring' })).status).toBe(200)
  expect((await publish({ scope: 'unattached' })).status).toBe(200)
  expect((await publish({ rule: 'when: text.contains("a")\nBe kind.' })).status).toBe(200)
  const { metrics, policies, moderation } = api.house
  const pinned = () => policies.inForce.pin(api.organization.organizationId)
  const problems = () => {
    const hasJudge = moderation.current().judge !== null
    return describePinned(pinned(), hasJudge).policies.flatMap((each) => each.problem ?? [])
  }
  const failures = async () => (await metrics.policyFailures.get()).values[0]?.value
  await waitUntil(() => pinned().snapshot.policies.length === 4)
  await waitUntil(async () => (await failures()) === 0)
  expect(problems()).toEqual([])

  await writeFile(file, JSON.stringify({ scorers }))
  await waitUntil(async () => (await failures()) === 2)
  const problem = 'the rule needs a judge model, which this gateway does not have'
  expect(problems()).toEqual([problem, problem])

  await writeFile(file, JSON.stringify({ scorers, judge: { adapter: 'scripted' } }))
  await waitUntil(async () => (await failures()) === 0)
})

test('409: a project has 20 enforcing policies in plain language for each direction', async () => {
  const { publish } = await openApi()
  const direction = 'request'
  const first = await publish({ direction })
  expect((await first.move(pausePolicy, 2)).status).toBe(200)
  for (let number = 0; number < 19; number++) {
    expect((await publish({ direction })).status).toBe(200)
  }
  expect((await publish({ direction })).status).toBe(200)

  const refused = await publish({ direction: 'both' })
  expect([refused.status, refused.error?.code]).toEqual([409, 'limit_reached'])
  expect(refused.error?.message).toContain('there would be 21')
  expect((await first.move(resumePolicy, 3)).status).toBe(409)

  expect((await publish({ direction: 'response' })).status).toBe(200)
  expect((await publish({ direction, mode: 'monitoring' })).status).toBe(200)
  expect((await publish({ direction, scope: 'unattached' })).status).toBe(200)
  expect((await publish({ direction, rule: ' cel: true' })).status).toBe(200)
  const gated = ' when: text.contains("a")\nBe kind.'
  for (let number = 0; number < 2; number++) {
    expect((await publish({ direction, rule: gated })).status).toBe(200)
  }
})

test('deleted policies do not count among those that the judge is asked about', async () => {
  const { publish } = await openApi()
  for (let number = 0; number < 20; number++) {
    const policy = await publish()
    expect((await policy.remove(2)).status).toBeLessThan(300)
  }
  expect((await publish()).status).toBe(200)
})

test.each([
  ['Nobody may mention "Falcon".', true],
  ['when: text.contains("a")\nNobody may mention "Falcon".', true],
  ['cel: text.contains("falcon")', undefined],
])(
  'a judge that is a test double is told of where %j is tried or published',
  async (rule, isWarned) => {
    const { api } = await openApi()
    const { body: created } = await api.send(createPolicy, {
      body: { name: 'Falcon', rule, scope: 'organization', mode: 'enforcing' },
    })
    const params = { policy_id: created.id }
    const texts = [{ text: 'a falcon', direction: 'request' as const }]
    const { body: tried } = await api.send(evaluatePolicy, { params, body: { texts } })
    const { body: published } = await api.send(publishPolicy, { params, body: { revision: 1 } })
    expect(tried).toMatchObject({ results: [{ matched: true }] })
    const warnings = isWarned && [expect.stringContaining('is a test double')]
    const both = [tried, published] as { warnings?: unknown }[]
    expect(both.map((answer) => answer.warnings)).toEqual([warnings, warnings])
  },
)
