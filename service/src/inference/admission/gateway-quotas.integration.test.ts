import { createProjectApiKey, updateProjectApiKey } from '@gatehouse/contract/api-key'
import { createProject, updateProject } from '@gatehouse/contract/project'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import {
  creditsOfCall,
  prepareQuotaCalls,
  projectQuota,
  userQuota,
} from '#testing/quotas/quota-calls.ts'

// Whom the quotas of a saved configuration count, and which calls they refuse.

test('each user has a quota, by the header or by the key; without `user_quotas` no user has', async () => {
  const { api, save, call, readUsage } = await prepareQuotaCalls({ config: userQuota('daily', 1) })
  const { org_controls } = userQuota('daily', 1)
  const statuses = async () => [
    (await call({ user: 'ann' })).status,
    (await call({ user: 'bob' })).status,
    (await call()).status,
  ]
  expect(await statuses()).toEqual([200, 200, 200])
  expect(await statuses()).toEqual([429, 429, 429])
  const { rows } = await sql<{ id: string }>`
    select id from api_key where kind = 'project'`.execute(api.db)
  const subjects = (await readUsage()).map(({ subject }) => subject)
  expect(subjects).toEqual(['ann', 'bob', ...rows.map(({ id }) => id)])
  await save({ org_controls: { ...org_controls, user_quotas: false } })
  expect(await statuses()).toEqual([200, 200, 200])
})

test('users of a project share its quota, and other projects have their own', async () => {
  const { api, call } = await prepareQuotaCalls({ config: projectQuota('monthly', 2) })
  expect((await call({ user: 'ann' })).status).toBe(200)
  expect((await call({ user: 'bob' })).status).toBe(200)
  const refused = await call({ user: 'carol' })
  expect(refused).toMatchObject({
    status: 429,
    policy: { policy_id: 'policy-gateway', reason_code: 'PROJECT_QUOTA_EXCEEDED' },
  })
  const { id: project_id } = (await api.send(createProject, { body: { name: 'Other' } })).body
  const made = await api.send(createProjectApiKey, { params: { project_id }, body: { name: 'x' } })
  expect((await call({ key: made.body.value })).status).toBe(200)
})

test('every family of endpoints is refused, and says by which quota', async () => {
  const { call, post } = await prepareQuotaCalls({ config: projectQuota('monthly', 1) })
  expect((await call()).status).toBe(200)
  const messages = [{ role: 'user', content: 'Hi.' }]
  const model = 'chat-scripted'
  for (const refused of [
    await call(),
    await post('/v1/messages', { model, max_tokens: 5, messages }),
    await post('/v1/responses', { model, input: 'Hi.' }),
  ]) {
    expect(refused).toMatchObject({
      status: 429,
      policy: { reason_code: 'PROJECT_QUOTA_EXCEEDED' },
      headers: { 'retry-after': '1', 'x-policy-decision': 'refuse; mode=enforced' },
    })
  }
})

const everyone = { enabled: true, sample_percent: 100 }
const emptySample = { enabled: true, sample_percent: 0 }

test('in the shadow nothing is refused: what would be is counted, and told by the event', async () => {
  const config = { ...userQuota('daily', 1), rollout: { shadow: everyone } }
  const { call, readUsage, readEvents } = await prepareQuotaCalls({ config })
  const ann = { user: 'ann' }
  expect([(await call(ann)).status, (await call(ann)).status]).toEqual([200, 200])
  expect(await readUsage()).toMatchObject([{ subject: 'ann', requests: 2 }])
  const events = await readEvents()
  expect(events).toHaveLength(2)
  const shadow = { outcome: 'completed', effective_decision: 'allow', rollout_mode: 'shadow' }
  const exceeding = events.find((event) => 'quotas_exceeded' in event)
  expect(exceeding).toMatchObject({
    ...shadow,
    quotas_exceeded: ['user'],
    decision: 'refuse',
    reason_code: 'USER_QUOTA_EXCEEDED',
    enforced: false,
  })
  const other = events.find((event) => event !== exceeding)
  expect(other).toMatchObject({ ...shadow, decision: 'allow' })
  expect(other).not.toHaveProperty('quotas_exceeded')
})

test('outside of the sample nothing is counted, in the canary calls are refused', async () => {
  const { save, call, readUsage } = await prepareQuotaCalls({
    config: { ...userQuota('daily', 1), rollout: { canary: emptySample } },
  })
  const ann = { user: 'ann' }
  expect([(await call(ann)).status, (await call(ann)).status]).toEqual([200, 200])
  expect(await readUsage()).toEqual([])
  await save({ ...userQuota('daily', 1), rollout: { canary: everyone } })
  expect([(await call(ann)).status, (await call(ann)).status]).toEqual([200, 429])
  await save({
    ...userQuota('daily', 1),
    rollout: { canary: { ...everyone, targets: ['messages'] } },
  })
  expect((await call(ann)).status).toBe(200)
})

test('counting tokens takes a request of the quotas, no tokens and nothing of a budget', async () => {
  const { call, count, save, readUsage, readEvents } = await prepareQuotaCalls({
    config: userQuota('daily', 2, 1000),
  })
  const ann = { user: 'ann' }
  expect([(await count(ann)).status, (await call(ann)).status]).toEqual([200, 200])
  expect(await readUsage()).toMatchObject([{ requests: 2, tokens: 30 }])
  const refused = await count(ann)
  expect(refused.status).toBe(429)
  expect(refused.headers['retry-after']).toBe('1')
  const refusals = (await readEvents()).filter(({ outcome }) => outcome === 'refused')
  expect(refusals).toMatchObject([
    {
      policy_target: 'messages.count_tokens',
      status: 429,
      quota_subject: 'ann',
      reason_code: 'USER_QUOTA_EXCEEDED',
    },
  ])
  const monthly_budget = { credits: 0 }
  await save({ org_controls: { monthly_budget } })
  expect([(await count(ann)).status, (await call(ann)).status]).toEqual([200, 402])
})

test('projects and keys have budgets of their own, which begin with what the month has cost', async () => {
  // What a month has cost is added up by the clock of the database.
  const { api, call, readUsage } = await prepareQuotaCalls({ atMs: Date.now })
  const { projectId: project_id } = api.organization
  const made = await api.send(createProjectApiKey, { params: { project_id }, body: { name: 'x' } })
  const [key, key_id] = [made.body.value, made.body.id]
  expect([(await call({ key })).status, (await call({ key })).status]).toEqual([200, 200])
  expect(await readUsage()).toEqual([])
  const setKey = async (monthly_budget: object | null) => {
    const params = { project_id, key_id }
    const answer = await api.send(updateProjectApiKey, { params, body: { monthly_budget } })
    return answer.body
  }
  const complete = { alert_percents: [80, 100], hard_stop: true }
  expect(await setKey({ credits: 2 * creditsOfCall })).toMatchObject({
    monthly_budget: { credits: 2 * creditsOfCall, ...complete },
  })
  expect(await readUsage()).toMatchObject([
    { scope: 'key', subject: key_id, credits: 2 * creditsOfCall },
  ])
  await waitUntil(async () => (await call({ key })).status === 402)
  // Another key of the project has no budget.
  expect((await call()).status).toBe(200)
  expect(await setKey(null)).toMatchObject({ monthly_budget: null })
  await waitUntil(async () => (await call({ key })).status === 200)
  const project = await api.send(updateProject, {
    params: { project_id },
    body: { monthly_budget: { credits: 1, alert_percents: [], hard_stop: true } },
  })
  expect(project.body).toMatchObject({
    monthly_budget: { credits: 1, alert_percents: [], hard_stop: true },
  })
  await waitUntil(async () => (await call()).status === 402)
})
