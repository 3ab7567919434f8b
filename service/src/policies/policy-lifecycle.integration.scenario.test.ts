import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  deletePolicy,
  listPolicies,
  listPolicyVersions,
  pausePolicy,
  type Policy,
  type PolicyCreation,
  PolicyState,
  publishPolicy,
  readPolicyRollout,
  restorePolicyVersion,
  resumePolicy,
  retrievePolicy,
  retrievePolicyVersion,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { readPolicyDecisions, readPolicyExamples } from '@gatehouse/contract/policy-evaluation'
import { archiveProject, createProject } from '@gatehouse/contract/project'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'
import { createTestClock } from '#testing/test-gateway.ts'

let clock: ReturnType<typeof createTestClock>
let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  clock = createTestClock()
  house = await createPolicyApi({ now: clock.now })
})

const seconds = () => Math.floor(clock.now().getTime() / 1000)

const outcome = ({ status, body }: { status: number; body: { error?: { code: string } } }) =>
  body.error ? `${status} ${body.error.code}` : `${status}`

test('201: a new policy is a draft with the defaults, and can be read at once', async () => {
  const { api } = house
  const answer = await api.send(createPolicy, { body: { name: ' Weapons ', rule: ' None. ' } })
  expect([answer.status, answer.body]).toEqual([
    201,
    {
      id: expect.stringMatching(/^pol_[0-9a-hjkmnp-tv-z]{24}$/) as string,
      object: 'organization.policy',
      name: 'Weapons',
      description: '',
      state: 'draft',
      revision: 1,
      current_version: null,
      has_unpublished_changes: true,
      managed_by: null,
      created_at: seconds(),
      updated_at: seconds(),
      draft: {
        rule: ' None. ', // verbatim
        direction: 'both',
        mode: 'monitoring',
        scope: 'unattached',
        project_ids: [],
        match_threshold_basis_points: null,
        base_version: null,
      },
      published: null,
    },
  ])
  expect(await house.read(answer.body)).toEqual(answer.body)
})

const wish: PolicyCreation = {
  name: 'Weapons',
  description: 'No arms',
  rule: 'cel: true',
  direction: 'response',
  mode: 'enforcing',
  scope: 'projects',
  match_threshold_basis_points: 1,
}

test('200: publishing makes version 1 of the draft, and the published version is all of it', async () => {
  const project_ids = [house.api.organization.projectId]
  const draft = await house.create({ ...wish, project_ids })
  const { name, description, ...content } = { ...wish, project_ids }
  expect(draft).toMatchObject({ name, description, draft: { ...content, base_version: null } })
  clock.pass(5000)
  const published = await house.change(publishPolicy, draft)
  expect(published).toEqual({
    ...draft,
    state: 'enforcing',
    revision: 2,
    current_version: 1,
    has_unpublished_changes: false,
    updated_at: seconds(),
    draft: { ...content, base_version: 1 },
    published: {
      id: expect.stringMatching(/^polver_[0-9a-hjkmnp-tv-z]{24}$/) as string,
      object: 'organization.policy.version',
      version: 1,
      ...content,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      published_at: seconds(),
      current: true,
    },
  })
  expect(await house.read(draft)).toEqual(published)
})

test('200: an edit changes the draft alone; edited back, there is nothing to publish', async () => {
  const published = await house.createIn('monitoring')
  clock.pass(5000)
  const edited = await house.change(updatePolicy, published, { rule: 'Other.', mode: 'enforcing' })
  expect(edited).toEqual({
    ...published,
    revision: 3,
    has_unpublished_changes: true,
    updated_at: seconds(),
    draft: { ...published.draft, rule: 'Other.', mode: 'enforcing' },
  })
  expect(await house.read(published)).toEqual(edited)
  const back = await house.change(updatePolicy, edited, {
    rule: published.draft.rule,
    mode: 'monitoring',
  })
  expect(back).toEqual({ ...published, revision: 4, updated_at: seconds() })
  const refused = await house.send(publishPolicy, back)
  expect(outcome(refused)).toBe('409 no_unpublished_changes')
})

test('200: name and description take effect at once and are no unpublished change', async () => {
  const published = await house.createIn('monitoring')
  const named = { name: 'Arms', description: 'None of them' }
  const renamed = await house.change(updatePolicy, published, named)
  expect(renamed).toEqual({ ...published, ...named, revision: 3 })
})

test('200: an edit that changes nothing leaves revision and time as they were', async () => {
  const project_ids = [house.api.organization.projectId]
  const policy = await house.create({ ...wish, project_ids })
  clock.pass(5000)
  for (const body of [{}, { ...wish, project_ids: [...project_ids, ...project_ids] }]) {
    expect(await house.change(updatePolicy, policy, body)).toEqual(policy)
  }
  expect(await house.read(policy)).toEqual(policy)
})

test('200: pause and resume change the state, the revision and the time, nothing else', async () => {
  const published = await house.createIn('enforcing')
  clock.pass(5000)
  const paused = await house.change(pausePolicy, published)
  const expected = { ...published, state: 'paused', revision: 3, updated_at: seconds() }
  expect(paused).toEqual(expected)
  clock.pass(5000)
  const resumed = await house.change(resumePolicy, paused)
  expect(resumed).toEqual({ ...published, revision: 4, updated_at: seconds() })
})

test('200: publishing while paused makes a version and stays paused; resuming uses its mode', async () => {
  const paused = await house.createIn('paused')
  const edited = await house.change(updatePolicy, paused, { mode: 'enforcing' })
  const published = await house.change(publishPolicy, edited)
  expect(published).toMatchObject({
    state: 'paused',
    current_version: 2,
    has_unpublished_changes: false,
    draft: { base_version: 2 },
    published: { version: 2, mode: 'enforcing' },
  })
  const draftOnly = await house.change(updatePolicy, published, { mode: 'monitoring' })
  expect(await house.change(resumePolicy, draftOnly)).toMatchObject({ state: 'enforcing' })
})

/** docs/specification/policies.md#states. `edited`: the draft has another mode than what is published. */
const table: Record<PolicyState, [endpoint: Endpoint, plain: string, edited: string][]> = {
  draft: [
    [updatePolicy, 'draft', 'draft'],
    [publishPolicy, 'monitoring', 'enforcing'],
    [pausePolicy, '409 policy_not_active', '409 policy_not_active'],
    [resumePolicy, '409 policy_not_paused', '409 policy_not_paused'],
    [restorePolicyVersion, '404 version_not_found', '404 version_not_found'],
    [deletePolicy, 'gone', 'gone'],
  ],
  monitoring: [
    [updatePolicy, 'monitoring', 'monitoring'],
    [publishPolicy, '409 no_unpublished_changes', 'enforcing'],
    [pausePolicy, 'paused', 'paused'],
    [resumePolicy, '409 policy_not_paused', '409 policy_not_paused'],
    [restorePolicyVersion, 'monitoring', 'monitoring'],
    [deletePolicy, 'gone', 'gone'],
  ],
  enforcing: [
    [updatePolicy, 'enforcing', 'enforcing'],
    [publishPolicy, '409 no_unpublished_changes', 'monitoring'],
    [pausePolicy, 'paused', 'paused'],
    [resumePolicy, '409 policy_not_paused', '409 policy_not_paused'],
    [restorePolicyVersion, 'enforcing', 'enforcing'],
    [deletePolicy, 'gone', 'gone'],
  ],
  paused: [
    [updatePolicy, 'paused', 'paused'],
    [publishPolicy, '409 no_unpublished_changes', 'paused'],
    [pausePolicy, '409 policy_not_active', '409 policy_not_active'],
    [resumePolicy, 'monitoring', 'monitoring'],
    [restorePolicyVersion, 'paused', 'paused'],
    [deletePolicy, 'gone', 'gone'],
  ],
}

test.each(PolicyState.options)('every operation in state %s', async (state) => {
  const mode = state === 'enforcing' ? 'monitoring' : 'enforcing'
  for (const [endpoint, ...expected] of table[state]) {
    const seen: string[] = []
    for (const isEdited of [false, true]) {
      const first = await house.createIn(state)
      const policy = isEdited ? await house.change(updatePolicy, first, { mode }) : first
      const answer = await house.send(endpoint, policy, { params: { version: '1' } })
      const after = await house.api.send(retrievePolicy, { params: { policy_id: policy.id } })
      if (after.status === 404) seen.push('gone')
      else if (answer.status === 200) seen.push((after.body as unknown as Policy).state)
      else seen.push(outcome(answer))
      if (answer.status === 409) expect(answer.headers['x-should-retry']).toBe('false')
      if (answer.status >= 400) expect(after.body).toEqual(policy) // refused is untouched
    }
    expect(seen, endpoint.id).toEqual(expected)
  }
})

test('409: a revision that is not the current one, which the message names, in every operation', async () => {
  const policy = await house.createIn('monitoring')
  const edited = await house.change(updatePolicy, policy, { name: 'Other' })
  for (const endpoint of [
    updatePolicy,
    publishPolicy,
    pausePolicy,
    resumePolicy,
    restorePolicyVersion,
    deletePolicy,
  ]) {
    for (const revision of [edited.revision - 1, edited.revision + 1]) {
      const held = { id: policy.id, revision }
      const answer = await house.send(endpoint, held, { params: { version: '1' } })
      expect(outcome(answer), endpoint.id).toBe('409 revision_conflict')
      const place = endpoint.method === 'DELETE' ? 'query' : 'body'
      expect(answer.body.error).toMatchObject({
        type: 'conflict_error',
        param: `${place}.revision`,
        message: expect.stringContaining(` ${edited.revision}.`) as string,
      })
      expect(answer.headers['x-should-retry']).toBe('false')
    }
  }
  expect(await house.read(policy)).toEqual(edited)
})

test('of many edits of one revision exactly one is made', async () => {
  const policy = await house.create()
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      house.send(updatePolicy, policy, { body: { name: `Name ${index}` } }),
    ),
  )
  const outcomes = answers.map(outcome)
  expect(outcomes.toSorted()).toEqual([
    '200',
    ...Array.from({ length: 7 }, () => '409 revision_conflict'),
  ])
  const winner = answers[outcomes.indexOf('200')]?.body
  expect(await house.read(policy)).toEqual(winner)
  expect(winner).toMatchObject({ revision: 2 })
})

test('409: a draft whose project was archived since cannot be published', async () => {
  const { api } = house
  const project = (await api.send(createProject, { body: { name: 'Old' } })).body.id
  const draft = await house.create({ scope: 'projects', project_ids: [project] })
  await api.send(archiveProject, { params: { project_id: project } })
  const refused = await house.send(publishPolicy, draft)
  expect(outcome(refused)).toBe('409 draft_not_publishable')
  expect(refused.body.error.param).toBe('draft.project_ids')
  expect(await house.read(draft)).toEqual(draft)
  // The project that is gone does not stand in the way of other edits.
  const renamed = await house.change(updatePolicy, draft, { name: 'Other' })
  const moved = await house.change(updatePolicy, renamed, {
    scope: 'organization',
    project_ids: [],
  })
  expect(await house.change(publishPolicy, moved)).toMatchObject({ current_version: 1 })
})

const endpoints = [
  retrievePolicy,
  updatePolicy,
  publishPolicy,
  pausePolicy,
  resumePolicy,
  deletePolicy,
  listPolicyVersions,
  retrievePolicyVersion,
  restorePolicyVersion,
  readPolicyRollout,
  readPolicyExamples,
  readPolicyDecisions,
]

test('200: a deleted policy is gone everywhere, and its versions are kept', async () => {
  const policy = await house.createIn('enforcing')
  const deleted = await house.send(deletePolicy, policy)
  const marker = { id: policy.id, object: 'organization.policy.deleted', deleted: true }
  expect([deleted.status, deleted.body]).toEqual([200, marker])
  for (const endpoint of endpoints) {
    const answer = await house.send(endpoint, policy, { params: { version: '1' } })
    expect(outcome(answer), endpoint.id).toBe('404 policy_not_found')
  }
  expect((await house.api.send(listPolicies)).body.data).toEqual([])
  const kept = await house.api.db.selectFrom('policy_version').select('policy_id').execute()
  expect(kept).toEqual([{ policy_id: policy.id }])
})

test('404: a policy of another organization, in every operation', async () => {
  const policy = await house.createIn('monitoring')
  const { adminKey: credential } = await createOrganization('Other', house.api.house)
  for (const endpoint of endpoints) {
    const answer = await house.send(endpoint, policy, { params: { version: '1' }, credential })
    expect(outcome(answer), endpoint.id).toBe('404 policy_not_found')
  }
  expect((await house.api.send(listPolicies, { credential })).body.data).toEqual([])
  expect(await house.read(policy)).toEqual(policy)
})
