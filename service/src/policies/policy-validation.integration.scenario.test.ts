import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  publishPolicy,
  restorePolicyVersion,
  resumePolicy,
  retrievePolicy,
  retrievePolicyVersion,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { archiveProject, createProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

type Answer = Awaited<ReturnType<typeof house.send>>
const refusal = ({ status, body }: Answer) => [status, body.error?.code, body.error?.param]
const label = (value: unknown) => JSON.stringify(value)?.slice(0, 60)

const good = { name: 'Weapons', rule: 'None.' }
const post = (body: object) => house.api.send(createPolicy, { body })

/** Sends one member to create and to update, and expects the same refusal of both. */
async function expectRefused(body: object, code: string, param: string) {
  const created = await post({ ...good, ...body })
  expect(refusal(created), `create ${label(body)}`).toEqual([422, code, param])
  const policy = await house.create()
  const updated = await house.send(updatePolicy, policy, { body })
  expect(refusal(updated), `update ${label(body)}`).toEqual([422, code, param])
  expect(await house.read(policy)).toEqual(policy)
}

/** Sends one member to create and to update, and expects both to show it; else `shown`. */
async function expectAccepted(body: object, shown: object = body) {
  const created = await post({ ...good, ...body })
  const updated = await house.send(updatePolicy, await house.create(), { body })
  for (const answer of [created, updated]) {
    expect(answer.body.error, label(body)).toBeUndefined()
    const policy = answer.body as unknown as { draft: object }
    expect({ ...policy, ...policy.draft }).toMatchObject(shown)
  }
}

const astral = (count: number) => '💥'.repeat(count)

test('name: 1 to 80 code points after trimming', async () => {
  for (const name of ['x', 'x'.repeat(80), astral(80)]) await expectAccepted({ name })
  const padded = `\n \u3000${'x'.repeat(80)}\t `
  await expectAccepted({ name: padded }, { name: 'x'.repeat(80) })
  const bad = ['', '  ', 'x'.repeat(81), astral(81), 'a\0b', '\ud83d', 1, true, [], {}]
  for (const name of bad) await expectRefused({ name }, 'invalid_parameter', 'body.name')
})

test('description: up to 240 code points after trimming', async () => {
  for (const description of ['x', 'x'.repeat(240), astral(240)])
    await expectAccepted({ description })
  await expectAccepted({ description: '' })
  await expectAccepted({ description: ' \n' }, { description: '' })
  await expectAccepted({ description: ` ${'x'.repeat(240)} ` }, { description: 'x'.repeat(240) })
  const bad = ['x'.repeat(241), astral(241), 'a\0b', '\ude00', 1, false, [], {}]
  for (const description of bad) {
    await expectRefused({ description }, 'invalid_parameter', 'body.description')
  }
})

test('rule: 1 to 20,000 code points, stored verbatim', async () => {
  // More of them beyond the basic plane would not fit into a body.
  const longest = astral(15_000) + 'x'.repeat(5000)
  const verbatim = ' \n e\u0301 \r\n\t\u3000x \u2028'
  for (const rule of ['x', 'x'.repeat(20_000), longest, verbatim]) await expectAccepted({ rule })
  const bad = ['', 'x'.repeat(20_001), `${longest}x`, 'a\0b', 'a\ud83d', 1, true, [], {}]
  for (const rule of bad) await expectRefused({ rule }, 'invalid_parameter', 'body.rule')
})

test('rule: a form that could not be put in force is refused', async () => {
  const bad = [
    ' ',
    ' \n\t\u3000',
    'cel:',
    ' cel: \n',
    'when:',
    'when:\ntext',
    'when: x',
    'when: stream\n ',
    'cel: nobody',
    'cel: model.matches("a")',
    'cel: text.matches("(a)\\\\1")',
    'when: 5000\nNo weapons.',
    'cel: text.matches("a.{0,450}b.{0,450}c")', // seconds for a long text, in every engine
  ]
  for (const rule of bad) await expectRefused({ rule }, 'invalid_parameter', 'body.rule')
  const good = ['cel: true', ' cel:stream', 'when: stream\ny', 'when: stream\r\n y']
  for (const rule of [...good, 'cel: text.matches("(?i)weapon")']) await expectAccepted({ rule })
})

test.each([
  ['direction', ['request', 'response', 'both']],
  ['mode', ['monitoring', 'enforcing']],
  ['scope', ['organization', 'unattached']], // 'projects' needs some
])('%s: one of %j', async (member, values) => {
  for (const value of values) await expectAccepted({ [member]: value })
  for (const value of ['', 'x', values[0]!.toUpperCase(), ` ${values[0]}`, 1, true, [], {}]) {
    await expectRefused({ [member]: value }, 'invalid_parameter', `body.${member}`)
  }
})

test('match_threshold_basis_points: 1 to 9999', async () => {
  const member = (value: unknown) => ({ match_threshold_basis_points: value })
  for (const value of [1, 9999]) await expectAccepted(member(value))
  for (const value of [0, -1, 10_000, 1.5, '1', true, [], {}, 2 ** 53]) {
    const param = 'body.match_threshold_basis_points'
    await expectRefused(member(value), 'invalid_parameter', param)
  }
})

/** Active projects, written directly: a thousand calls would take long. */
async function seedProjects(count: number): Promise<string[]> {
  const { organizationId } = house.api.organization
  const { rows } = await sql<{ id: string }>`
    insert into project (organization_id, id, name, created_at)
    select ${organizationId}, 'proj_' || lpad(number::text, 24, '0'), 'Many', now()
    from generate_series(1, ${count}::integer) as number returning id`.execute(house.api.db)
  return rows.map(({ id }) => id)
}

test('project_ids: 1 to 1000 with scope projects', async () => {
  const ids = await seedProjects(1001)
  for (const project_ids of [ids.slice(0, 1), ids.slice(0, 1000)]) {
    await expectAccepted({ scope: 'projects', project_ids })
  }
  for (const project_ids of [ids, Array.from({ length: 1001 }, () => ids[0])]) {
    const body = { scope: 'projects', project_ids }
    await expectRefused(body, 'invalid_parameter', 'body.project_ids')
  }
  for (const project_ids of ['x', 1, true, {}]) {
    await expectRefused({ project_ids }, 'invalid_parameter', 'body.project_ids')
  }
})

test('project_ids: each is 1 to 200 characters, and a refusal names the first bad one', async () => {
  const known = house.api.organization.projectId
  for (const bad of ['', 'x'.repeat(201), 'a\0b', '\ud83d', 1, null, []]) {
    const body = { scope: 'projects', project_ids: [known, bad] }
    await expectRefused(body, 'invalid_parameter', 'body.project_ids[1]')
  }
  for (const unknown of ['x', 'x'.repeat(200)]) {
    const body = { scope: 'projects', project_ids: [known, unknown] }
    await expectRefused(body, 'unknown_project', 'body.project_ids[1]')
  }
})

test('project_ids: the refusal of unknown, foreign and archived projects names their index as sent', async () => {
  const { api } = house
  const known = api.organization.projectId
  const { projectId: foreign } = await createOrganization('Other', api.house)
  const archived = (await api.send(createProject, { body: { name: 'Old' } })).body.id
  await api.send(archiveProject, { params: { project_id: archived } })
  for (const id of [foreign, archived, 'proj_none', known.toUpperCase(), ` ${known}`]) {
    const body = { scope: 'projects', project_ids: [known, known, id, known, 'proj_none'] }
    await expectRefused(body, 'unknown_project', 'body.project_ids[2]')
  }
})

test('project_ids: duplicates are removed, each keeping its first position', async () => {
  const [a, b, c] = await seedProjects(3)
  await expectAccepted(
    { scope: 'projects', project_ids: [b, a, b, c, a] },
    { project_ids: [b, a, c] },
  )
})

test('invalid_scope: the scope projects needs project ids, the others must have none', async () => {
  const some = [house.api.organization.projectId]
  for (const body of [
    { scope: 'projects' },
    { scope: 'projects', project_ids: [] },
    { scope: 'organization', project_ids: some },
    { scope: 'unattached', project_ids: some },
    { project_ids: some },
  ]) {
    await expectRefused(body, 'invalid_scope', 'body.project_ids')
  }
})

test('invalid_scope: an edit is validated by the draft that it would make', async () => {
  const some = [house.api.organization.projectId]
  const policy = await house.create({ scope: 'projects', project_ids: some })
  const bad = [
    { scope: 'organization' },
    { scope: 'organization', project_ids: null },
    { project_ids: [] },
    { scope: null, project_ids: [] },
  ]
  for (const body of bad) {
    const answer = await house.send(updatePolicy, policy, { body })
    expect(refusal(answer), label(body)).toEqual([422, 'invalid_scope', 'body.project_ids'])
  }
  const freed = { scope: 'organization', project_ids: [] }
  expect((await house.change(updatePolicy, policy, freed)).draft).toMatchObject(freed)
})

test('null in an edit is the same as nothing, for every member but the threshold, which it clears', async () => {
  const policy = await house.create({
    name: 'Name',
    description: 'Text',
    rule: 'Rule',
    direction: 'request',
    mode: 'enforcing',
    scope: 'projects',
    project_ids: [house.api.organization.projectId],
    match_threshold_basis_points: 7,
  })
  const members = Object.keys(updatePolicy.body.shape).filter((each) => each !== 'revision')
  expect(members).toHaveLength(8)
  for (const member of members.filter((each) => each !== 'match_threshold_basis_points')) {
    expect(await house.change(updatePolicy, policy, { [member]: null }), member).toEqual(policy)
  }
  const renamed = await house.change(updatePolicy, policy, { name: 'Other' })
  expect(renamed.draft).toEqual(policy.draft) // the absent threshold stays
  const nulls = Object.fromEntries(members.map((member) => [member, null]))
  const cleared = await house.change(updatePolicy, renamed, nulls)
  expect(cleared).toEqual({
    ...renamed,
    revision: 3,
    updated_at: cleared.updated_at,
    draft: { ...renamed.draft, match_threshold_basis_points: null },
  })
  const body = { match_threshold_basis_points: null }
  expect(await house.change(updatePolicy, cleared, body)).toEqual(cleared)
})

test('null on creation is the default; name and rule have none and are required', async () => {
  const plain = await house.create()
  const shape = Object.keys(createPolicy.body.shape)
  const optional = shape.filter((member) => !(member in good))
  expect(optional).toHaveLength(6)
  const nulls = Object.fromEntries(optional.map((member) => [member, null]))
  for (const body of [nulls, ...optional.map((member) => ({ [member]: null }))]) {
    const made = await house.create(body)
    const { id, created_at, updated_at } = made
    expect(made, label(body)).toEqual({ ...plain, id, created_at, updated_at })
  }
  for (const member of ['name', 'rule']) {
    const missing = await post({ ...good, [member]: undefined })
    expect(refusal(missing)).toEqual([422, 'missing_field', `body.${member}`])
    const param = `body.${member}`
    expect(refusal(await post({ ...good, [member]: null }))).toEqual([
      422,
      'invalid_parameter',
      param,
    ])
  }
})

const atRevision = [updatePolicy, publishPolicy, pausePolicy, resumePolicy, restorePolicyVersion]
const one = { params: { version: '1' } }

test('422: an unknown member is named, on every endpoint with a body', async () => {
  const policy = await house.createIn('monitoring')
  const names = ['x', 'revisions', 'state', 'base_version', 'published', 'id', '', 'é', 'a.b[0]']
  for (const name of names) {
    await expectRefused({ [name]: null }, 'unknown_field', `body.${name}`)
    for (const endpoint of atRevision) {
      const answer = await house.send(endpoint, policy, { ...one, body: { [name]: 1 } })
      expect(refusal(answer), endpoint.id).toEqual([422, 'unknown_field', `body.${name}`])
    }
  }
  expect(refusal(await post({ ...good, revision: 1 }))).toEqual([
    422,
    'unknown_field',
    'body.revision',
  ])
  const long = await post({ ...good, ['x'.repeat(5000)]: 1 })
  expect(long.body.error.message.length).toBeLessThanOrEqual(300)
})

test('422: revision is a whole number from 1 to 2147483647, on every endpoint that takes one', async () => {
  const policy = await house.createIn('monitoring')
  for (const endpoint of atRevision) {
    for (const revision of [0, -1, 2_147_483_648, 2 ** 53, 1.5, '2', null, true, [], {}]) {
      const answer = await house.send(endpoint, policy, { ...one, body: { revision } })
      expect(refusal(answer), `${endpoint.id} ${label(revision)}`).toEqual([
        422,
        'invalid_parameter',
        'body.revision',
      ])
    }
    const missing = await house.send(endpoint, policy, { ...one, body: { revision: undefined } })
    expect(refusal(missing), endpoint.id).toEqual([422, 'missing_field', 'body.revision'])
    for (const revision of [1, 2_147_483_647]) {
      const answer = await house.send(endpoint, policy, { ...one, body: { revision } })
      expect(refusal(answer), endpoint.id).toEqual([409, 'revision_conflict', 'body.revision'])
    }
  }
  expect(await house.read(policy)).toEqual(policy)
})

test('422: the body of a change is an object', async () => {
  const { id: policy_id } = await house.create()
  for (const endpoint of [createPolicy, ...atRevision]) {
    const sent = { params: { policy_id, version: '1' } }
    for (const body of [[], [{ revision: 1 }]]) {
      const answer = await house.api.send(endpoint, { ...sent, body })
      expect(refusal(answer), endpoint.id).toEqual([422, 'invalid_parameter', 'body'])
    }
    const nothing = await house.api.send(endpoint, sent)
    expect([nothing.status, nothing.body.error.param], endpoint.id).toEqual([422, 'body'])
  }
})

/** Sends outside the body what the typed helpers would not. */
async function expectBadAddress(endpoint: Endpoint, url: string, param: string) {
  const answer = await house.api.app.inject({
    method: endpoint.method,
    url,
    headers: { authorization: `Bearer ${house.api.organization.adminKey}` },
    ...(endpoint.body && { payload: { revision: 1 } }),
  })
  const { error } = answer.json<{ error: { param: string; type: string } }>()
  expect([answer.statusCode, error.param, error.type], url).toEqual([
    422,
    param,
    'validation_error',
  ])
}

test('422: delete takes its revision from the query', async () => {
  const policy = await house.create()
  const url = `/v1/organization/policies/${policy.id}`
  const bad = [
    'x',
    '',
    '0',
    '-1',
    '1.0',
    '1e0',
    '%201',
    '2147483648',
    '99999999999',
    '1&revision=1',
  ]
  for (const each of ['', '?', ...bad.map((revision) => `?revision=${revision}`)]) {
    await expectBadAddress(deletePolicy, url + each, 'query.revision')
  }
  const far = await house.send(deletePolicy, { ...policy, revision: 2_147_483_647 })
  expect(refusal(far)).toEqual([409, 'revision_conflict', 'query.revision'])
  const query = { unknown: 'ignored' }
  expect((await house.send(deletePolicy, policy, { query, body: { revision: 9 } })).status).toBe(
    200,
  )
})

test('422: publish waits for nothing but applied', async () => {
  const policy = await house.create()
  const url = `/v1/organization/policies/${policy.id}/publish`
  for (const wait of ['foo', '', 'Applied', 'applied&wait=applied']) {
    await expectBadAddress(publishPolicy, `${url}?wait=${wait}`, 'query.wait')
  }
  expect(await house.read(policy)).toEqual(policy)
})

test('422: a version in the path is a whole number from 1 to 2147483647', async () => {
  const policy = await house.createIn('monitoring')
  const url = `/v1/organization/policies/${policy.id}/versions`
  for (const version of ['0', 'x', '-1', '1.5', '1e0', '%201', '2147483648', '99999999999']) {
    await expectBadAddress(retrievePolicyVersion, `${url}/${version}`, 'path.version')
    await expectBadAddress(restorePolicyVersion, `${url}/${version}/restore`, 'path.version')
  }
  const read = await house.send(retrievePolicyVersion, policy, one)
  expect([read.status, read.body]).toEqual([200, policy.published])
})

test('422: a policy id is 1 to 200 characters', async () => {
  const at = (id: string) => `/v1/organization/policies/${id}`
  await expectBadAddress(retrievePolicy, at('x'.repeat(201)), 'path.policy_id')
  await expectBadAddress(deletePolicy, `${at('x'.repeat(201))}?revision=1`, 'path.policy_id')
  await expectBadAddress(updatePolicy, at('x'.repeat(201)), 'path.policy_id')
  await expectBadAddress(updatePolicy, at('%00'), 'path.policy_id')
  const longest = { id: 'x'.repeat(200), revision: 1 }
  expect(refusal(await house.send(updatePolicy, longest))).toEqual([404, 'policy_not_found', null])
})
