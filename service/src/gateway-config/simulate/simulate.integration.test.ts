import {
  type HistoryEntry,
  listGatewayHistory,
  saveGatewayConfig,
  simulateGateway,
  type Simulation,
} from '@gatehouse/contract/policy-gateway/gateway'
import { sql } from 'kysely'
import { beforeEach, expect, onTestFinished, test } from 'vitest'

import { createIssuerDouble } from '#testing/issuer-double.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
})

async function simulate(
  body: object,
  sent: { credential?: string; headers?: Record<string, string> } = {},
) {
  const answer = await api.send(simulateGateway, { ...sent, body })
  return { ...answer, simulation: answer.body as unknown as Simulation }
}

const worked = { rules: { flagged_categories: ['hate'], rewrite_instead_of_refuse: true } }
const categories = ['hate/threatening', 'violence']
const rewritten = {
  decision: 'rewrite',
  reason_code: 'REWRITE',
  triggered_categories: ['hate/threatening'],
  rollout_mode: 'enforced',
  policy_id: 'policy-gateway',
}

/** All that is stored. */
const readAll = async () => ({
  config: await api.db.selectFrom('gateway_config').selectAll().execute(),
  history: await api.db.selectFrom('gateway_history').selectAll().execute(),
  events: await api.db.selectFrom('event').selectAll().execute(),
  epochs: await api.db.selectFrom('policy_epoch').selectAll().execute(),
})

test('200: the worked example, and nothing is kept of it', async () => {
  const before = await readAll()
  const first = await simulate({ config: worked, categories })
  expect([first.status, first.body]).toEqual([200, rewritten])
  const second = await simulate({
    config: worked,
    categories: [...categories, 'self-harm/intent'],
  })
  expect(second.body).toEqual({
    ...rewritten,
    decision: 'refuse',
    reason_code: 'REFUSE',
    triggered_categories: ['hate/threatening', 'self-harm/intent'],
  })
  expect(await readAll()).toEqual(before)
})

const allowed = {
  decision: 'allow',
  reason_code: 'ALLOW',
  triggered_categories: [],
  rollout_mode: 'enforced',
  policy_id: 'policy-gateway',
}

test('200: an empty object simulates what is saved, or the defaults', async () => {
  expect((await simulate({})).body).toEqual(allowed)
  await api.send(saveGatewayConfig, { body: { config: { ...worked, policy_id: 'saved' } } })
  expect((await simulate({})).body).toEqual({ ...allowed, policy_id: 'saved' })
  expect((await simulate({ categories })).body).toEqual({ ...rewritten, policy_id: 'saved' })
})

test('`config` counts before `policy`, and both before what is saved, without being completed by it', async () => {
  await api.send(saveGatewayConfig, { body: { config: { ...worked, policy_id: 'saved' } } })
  const decisionOf = async (body: object) => {
    const { decision, policy_id } = (await simulate({ ...body, categories: ['hate'] })).simulation
    return [decision, policy_id]
  }
  const config = { policy_id: 'one' }
  const policy = { policy_id: 'two', rules: { flagged_categories: ['hate'] } }
  expect(await decisionOf({ config, policy })).toEqual(['allow', 'one'])
  expect(await decisionOf({ policy })).toEqual(['refuse', 'two'])
  expect(await decisionOf({})).toEqual(['rewrite', 'saved'])
})

test('categories are those of the scenario and then the others, each once', async () => {
  const flagged_categories = ['a', 'b', 'c']
  const body = {
    config: { rules: { flagged_categories } },
    scenario: { categories: ['c', 'a', 'x'], colour: 'red' },
    categories: ['b', 'a/1', 'c'],
  }
  expect((await simulate(body)).simulation.triggered_categories).toEqual(['c', 'a', 'b', 'a/1'])
})

test('lists need a text, and what was found in it is told, and where', async () => {
  const rules = { allowlist: ['invoice'], denylist: ['bomb', 'gun'] }
  const of = async (scenario?: object) => (await simulate({ config: { rules }, scenario })).body
  expect(await of()).toEqual(allowed)
  const refused = { ...allowed, decision: 'refuse', reason_code: 'REFUSE' }
  expect(await of({ text: 'A kind word.' })).toEqual({
    ...refused,
    allowlist_hits: [],
    denylist_hits: [],
    matches: [],
  })
  expect(await of({ text: 'An INVOICE.' })).toEqual({
    ...allowed,
    allowlist_hits: ['invoice'],
    denylist_hits: [],
    matches: [{ start: 3, end: 10, pattern: 'invoice' }],
  })
  expect(await of({ text: 'An ｉnvoice for a bomb.' })).toEqual({
    ...refused,
    allowlist_hits: ['invoice'],
    denylist_hits: ['bomb'],
    matches: [
      { start: 3, end: 10, pattern: 'invoice' },
      { start: 17, end: 21, pattern: 'bomb' },
    ],
  })
})

test('a text is scored: flagged categories and those always blocked are found in it', async () => {
  const of = async (text: string) =>
    (await simulate({ config: worked, scenario: { text, categories: ['violence'] } })).simulation
  expect(await of('[[cat:hate=0.9]]')).toMatchObject({
    decision: 'rewrite',
    triggered_categories: ['hate'],
  })
  expect(await of('[[cat:harassment=0.9]]')).toMatchObject({ decision: 'allow' })
  expect(await of('[[cat:hate=0.9]] [[cat:self-harm=0.9]]')).toMatchObject({
    decision: 'refuse',
    triggered_categories: ['self-harm', 'hate'],
  })
})

test.each([
  [{}, 'enforced'],
  [{ shadow: { enabled: true } }, 'shadow'],
  [{ shadow: { enabled: true }, canary: { enabled: true, sample_percent: 1 } }, 'canary'],
])('the rollout %j has the mode %s, and the decision is the raw one', async (rollout, mode) => {
  const { simulation } = await simulate({ config: { ...worked, rollout }, categories })
  expect([simulation.decision, simulation.rollout_mode]).toEqual(['rewrite', mode])
})

test('while what is saved is rolled back, the mode is `rollback`', async () => {
  await api.send(saveGatewayConfig, { body: { config: worked } })
  const until = (seconds: number) =>
    sql`update gateway_config set rolled_back_until = now() + make_interval(secs => ${seconds})`.execute(
      api.db,
    )
  const modeOf = async (body: object) => (await simulate(body)).simulation.rollout_mode
  await until(60)
  expect([await modeOf({}), await modeOf({ config: worked })]).toEqual(['rollback', 'rollback'])
  await until(-1)
  expect(await modeOf({})).toBe('enforced')
})

test.each([
  [{ persist: 'yes' }, 'invalid_parameter', 'body.persist'],
  [{ colour: 'red' }, 'unknown_field', 'body.colour'],
  [{ policy: { rulez: {} } }, 'unknown_field', 'body.policy.rulez'],
  [{ categories: [''] }, 'invalid_parameter', 'body.categories[0]'],
  [{ categories: Array.from({ length: 101 }, String) }, 'invalid_parameter', 'body.categories'],
  [{ scenario: { text: 'x'.repeat(20_001) } }, 'invalid_parameter', 'body.scenario.text'],
  [
    { policy: { refusal_replacement: { mode: 'escalate' } } },
    'invalid_gateway_config',
    'body.policy.refusal_replacement.escalation_path',
  ],
])('422: %#', async (body, code, param) => {
  const { status, body: answer } = await simulate(body)
  expect([status, answer.error.code, answer.error.param]).toEqual([422, code, param])
})

test('`persist` keeps the result and leaves an event, without the text, and saves nothing', async () => {
  const scenario = { text: 'canary-9a1c bomb', categories }
  const config = { ...worked, rules: { ...worked.rules, denylist: ['bomb'] }, name: 'Tried' }
  const { status, simulation, headers } = await simulate({ config, scenario, persist: true })
  expect(status).toBe(200)
  const result = { ...rewritten, allowlist_hits: [], denylist_hits: ['bomb'] }
  expect(simulation).toEqual({
    ...result,
    matches: [{ start: 12, end: 16, pattern: 'bomb' }],
    history_id: expect.stringMatching(/^hist_/) as string,
  })
  const { data } = (await api.send(listGatewayHistory)).body as unknown as { data: HistoryEntry[] }
  expect(data).toMatchObject([
    { ...result, id: simulation.history_id, kind: 'simulation', categories },
  ])
  // Without the text its places would say nothing.
  expect(data[0]).not.toHaveProperty('matches')
  const { events, config: saved, epochs } = await readAll()
  expect([saved, epochs]).toEqual([[], []])
  const event = events.find(({ kind }) => kind === 'simulation')
  expect(event?.header).toMatchObject({
    ...result,
    history_id: simulation.history_id,
    persisted: true,
    scenario: categories,
    policy_name: 'Tried',
    data_classification: 'internal',
    request_id: headers['x-request-id'],
  })
  expect(JSON.stringify([events, data])).not.toContain('canary-9a1c')
})

test('a text is redacted: its values are counted and kept nowhere, and scorers elsewhere do not see them', async () => {
  const asked: { text: string; sent: string }[] = []
  const redacting = await createTestApi({
    change: (house) => ({
      ...house,
      moderation: {
        ...house.moderation,
        findCategories(texts, ...others) {
          asked.push(texts)
          return house.moderation.findCategories(texts, ...others)
        },
      },
    }),
  })
  const text = 'jane@example.com, joe@example.com, 10.0.0.1'
  const redactions = [
    { type: 'EMAIL', replaced: 2 },
    { type: 'IP', replaced: 1 },
  ]
  const part = { enabled: true, sample_percent: 100 }
  for (const rollout of [{}, { shadow: part }]) {
    const config = { rules: { redact: true }, rollout }
    const { body } = await redacting.send(simulateGateway, {
      body: { config, scenario: { text }, persist: true },
    })
    expect(body).toMatchObject({ decision: 'allow', redactions })
  }
  expect(asked).toEqual([
    { text, sent: '[EMAIL_1], [EMAIL_2], [IP_1]' },
    { text, sent: text },
  ])
  const { data } = (await redacting.send(listGatewayHistory)).body as unknown as {
    data: HistoryEntry[]
  }
  expect(data).toMatchObject([{ redactions }, { redactions }])
  const events = await redacting.db.selectFrom('event').selectAll().execute()
  expect(events.filter(({ kind }) => kind === 'simulation')).toMatchObject([
    { header: { redactions } },
    { header: { redactions } },
  ])
  expect(JSON.stringify([events, data])).not.toContain('example.com')
})

test('the history keeps the last 50 simulations, beside the revisions', async () => {
  await api.send(saveGatewayConfig, { body: { config: worked } })
  for (let index = 0; index < 52; index++) await simulate({ persist: true })
  const kinds = (await readAll()).history.map(({ kind }) => kind)
  expect([kinds.length, kinds.filter((kind) => kind === 'revision').length]).toEqual([51, 1])
})

test('with an Idempotency-Key a simulation is kept once', async () => {
  const once = { headers: { 'idempotency-key': 'k' } }
  const first = await simulate({ persist: true }, once)
  expect((await simulate({ persist: true }, once)).body).toEqual(first.body)
  expect((await readAll()).history).toHaveLength(1)
})

test('403: a caller who may only read can simulate, but not persist, and is told so before anything else', async () => {
  const { value: credential } = await createProjectKey(api.house, api.organization)
  expect((await simulate({ categories }, { credential })).status).toBe(200)
  for (const body of [{ persist: true }, { persist: true, colour: 'red' }]) {
    const refused = await simulate(body, { credential })
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([
      403,
      'Bearer error="insufficient_scope", scope="policy_gateway.write"',
    ])
  }
  // A stored answer is sent only to a caller that could have made the request.
  const once = { headers: { 'idempotency-key': 'k' } }
  expect((await simulate({ persist: true }, once)).status).toBe(200)
  expect((await simulate({ persist: true }, { ...once, credential })).status).toBe(403)
  expect((await readAll()).history).toHaveLength(1)
})

test('a token of the organization simulates', async () => {
  const issuer = await createIssuerDouble(() => new Date())
  onTestFinished(() => issuer[Symbol.asyncDispose]())
  const withTokens = await createTestApi({
    environment: (organizationId) => ({
      EGRESS_PRIVATE_TARGETS: issuer.host,
      JWT_ISSUERS: JSON.stringify([
        {
          issuer: issuer.issuer,
          jwks_url: issuer.jwksUrl,
          audience: issuer.audience,
          organizations: [organizationId],
          permissions: { read: ['policy_gateway.read'], none: [] },
        },
      ]),
    }),
  })
  const { organizationId } = withTokens.organization
  const statusWith = async (scope: string, body: object) => {
    const credential = await issuer.sign({ organization_id: organizationId, scope })
    return (await withTokens.send(simulateGateway, { credential, body })).status
  }
  expect(await statusWith('read', { categories })).toBe(200)
  expect(await statusWith('read', { persist: true })).toBe(403)
  expect(await statusWith('none', {})).toBe(403)
})

test('503: a text that cannot be scored is not taken for harmless', async () => {
  const away = await createTestApi({
    change: (house) => ({
      ...house,
      moderation: { ...house.moderation, findCategories: async () => null },
    }),
  })
  const body = { config: worked, scenario: { text: 'Anything.' } }
  const answer = await away.send(simulateGateway, { body })
  expect([answer.status, answer.body.error.code]).toEqual([503, 'policy_evaluation_unavailable'])
})
