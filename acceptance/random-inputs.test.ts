import { createAdminApiKey, createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { exampleOf } from '@gatehouse/contract/examples/examples'
import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { listGatewayHistory, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc, { type Arbitrary } from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'

import { call, type Sent } from './support/call.ts'
import { hostile, near, valid } from './support/schema-arbitrary.ts'
import { takesAdminKeys } from './support/tenants.ts'
import { canary, useStack } from './support/use-stack.ts'

// Random requests made from the contract's schemas: never a 5xx, never a hang, and every answer one
// that the contract describes (`call` checks that). RANDOM_INPUTS sets how many per endpoint.

const inputs = sizeOf({ usual: 100, long: 20_000, variable: 'RANDOM_INPUTS' })
const atOnce = 8

const stack = useStack()
let existing: Existing
let callers: Tenant[] = []
beforeAll(async () => {
  existing = await makeThings()
  // Nobody may call models as often as this: many take turns.
  callers = await createTenants(stack().service, 60)
})

const ids = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 250 }),
  fc.constantFrom(
    'key_',
    'proj_06gxsa67k5fs14qyqe2y1xyp',
    'pol_06gxsa67k5fs14qyqe2y1xyp',
    '%00',
    '\0',
    '../..',
    "' or 1=1",
    canary,
  ),
  fc.stringMatching(/^(key|proj|org)_[0-9a-z]{24}$/),
)
const notDots = (id: string) => !/^\.{0,2}$/.test(id) && id.isWellFormed()

/** What a sink is configured with follows from its type, which no random body gets right. It is disabled: nothing is sent. */
const sink = { type: 'datadog_logs', enabled: false, config: { api_key: 'example-key' } }

const exampleBody = (endpoint: Endpoint) =>
  endpoint.id === 'createExport' ? sink : exampleOf(endpoint)?.body

const nearExample = (endpoint: Endpoint, schema: NonNullable<Endpoint['body']>) =>
  endpoint.id === 'createExport' ? fc.constant(sink) : near(exampleBody(endpoint), schema)

const bodies = (endpoint: Endpoint): Arbitrary<Sent> => {
  if (endpoint.method === 'GET') return fc.constant({})
  const raw = fc.oneof(
    fc.constantFrom('', '{', 'null', '[]', '"x"', '1e400', '{"a":1,"a":2}', '{"__proto__":{}}'),
    fc.constantFrom('['.repeat(100), '{"a":'.repeat(65), '\ufeff{}'),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => new Uint8Array(bytes)),
  )
  const named = (body: Arbitrary<unknown>) =>
    fc
      .tuple(body, fc.nat(9))
      .map(([each, index]): Sent => ({ body: withModel(endpoint, each, index) }))
  // Of its bodies with random members, hardly any has exactly one change: to find them takes half a second each.
  const isRare = endpoint.id === 'createGatewayProposal'
  const sent = endpoint.body
    ? fc.oneof(
        { weight: isRare ? 0 : 2, arbitrary: named(valid(endpoint.body)) },
        { weight: 2, arbitrary: named(nearExample(endpoint, endpoint.body)) },
        { weight: isRare ? 0 : 5, arbitrary: named(hostile(endpoint.body)) },
        { weight: 1, arbitrary: raw.map((each): Sent => ({ raw: each })) },
      )
    : fc.oneof(
        fc.constant<Sent>({}),
        raw.map((each): Sent => ({ raw: each })),
      )
  return sent
}

const headers = fc.record(
  {
    'idempotency-key': fc.oneof(
      fc.stringMatching(/^[\x21-\x7e]{1,3}$/),
      fc.stringMatching(/^[\x20-\x7e]{1,300}$/),
    ),
    'content-type': fc.constantFrom('text/plain', 'application/json; charset=utf-16', 'x'),
    'content-encoding': fc.constantFrom('gzip', 'identity'),
    'x-request-id': fc.stringMatching(/^[\x21-\x7e]{1,200}$/),
  },
  { requiredKeys: [], noNullPrototype: true },
)

const models = ['claude-scripted', 'chat-scripted', 'responses-scripted']

/** Most bodies for models name one that exists: the others end there. */
const withModel = (endpoint: Endpoint, body: unknown, index: number): unknown => {
  const isCall = endpoint.dialect !== 'admin' && typeof body === 'object' && body !== null
  return isCall && index > 0 ? { ...body, model: models[index % models.length] } : body
}

/** Ids that name something, by path parameter. */
type Existing = Record<string, string[]>

async function makeThings(): Promise<Existing> {
  const { base_url: baseUrl, admin_key: credential, project_id } = stack().description
  const client = createClient({ baseUrl, credential })
  const ids: string[] = []
  for (let index = 0; index < 20; index++) {
    const name = `to be deleted ${index}`
    const admin = await client.call(createAdminApiKey, { body: { name, permissions: [] } })
    const params = { project_id }
    const project = await client.call(createProjectApiKey, { params, body: { name } })
    ids.push(admin.id, project.id)
  }
  const policy_id: string[] = []
  for (let index = 0; index < 20; index++) {
    const body = { name: `policy ${index}`, rule: 'Be kind.' }
    const { id } = await client.call(createPolicy, { body })
    policy_id.push(id)
    const params = { policy_id: id }
    if (index % 2) await client.call(publishPolicy, { params, query: {}, body: { revision: 1 } })
  }
  const history_id: string[] = []
  for (const name of ['one', 'two']) {
    await client.call(saveGatewayConfig, { body: { config: { name } } })
    const { data } = await client.call(listGatewayHistory, { query: { limit: '1' } })
    history_id.push(...data.map(({ id }) => id))
  }
  const ofPolicies = { policy_id, version: ['1'], history_id }
  return { project_id: [project_id], key_id: ids, ...ofPolicies, model_id: models }
}

/** Requests with the right key: everything behind the guard is reached. */
function requests(endpoint: Endpoint, existing: Existing): Arbitrary<Sent> {
  const params = Object.keys(endpoint.params?.shape ?? {}).map((name) => {
    const known = existing[name] ?? []
    const named = known.length > 0 ? fc.constantFrom(...known) : ids
    return [name, fc.oneof(ids, named).filter(notDots)] as const
  })
  const query = endpoint.query
    ? fc.oneof(
        hostile(endpoint.query, 'output'),
        valid(endpoint.query, 'output'),
        near(exampleOf(endpoint)?.query, endpoint.query, 'output'),
      )
    : fc.constant({})
  return fc
    .tuple(
      fc.record(Object.fromEntries(params)),
      query,
      bodies(endpoint),
      fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: headers }),
    )
    .map(([params, query, body, headers]) => ({ params, query: asQuery(query), ...body, headers }))
}

/** The example of the description. Its ids are replaced by those that name something here. */
function exampleRequest(endpoint: Endpoint, existing: Existing): Sent {
  const { params = {}, query = {} } = exampleOf(endpoint) ?? {}
  const known = Object.keys(params).map((name) => [name, existing[name]?.[0] ?? params[name]])
  return {
    params: Object.fromEntries(known) as Record<string, unknown>,
    query: asQuery(query),
    body: withModel(endpoint, exampleBody(endpoint), models.length),
  }
}

/** Only text can stand in a query string. */
function asQuery(query: unknown): Record<string, unknown> {
  if (typeof query !== 'object' || query === null) return { limit: JSON.stringify(query) }
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [
      name.toWellFormed(),
      (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed(),
    ]),
  )
}

/** Keys are refused there: only members who have signed in approve. */
const ofMembers = new Set(['approvePolicy', 'approveGatewayProposal'])

describe.each(endpoints.map((endpoint) => [endpoint.id, endpoint as Endpoint] as const))(
  '%s',
  (_, endpoint) => {
    test(
      `answers ${inputs} random requests as described`,
      async () => {
        const { base_url, admin_key } = stack().description
        let sentCount = 0
        const statuses = new Map<number, number>()
        const seed = Number(process.env['RANDOM_SEED'] ?? Date.now() % 2 ** 31)
        const batch = fc.array(requests(endpoint, existing), {
          minLength: atOnce,
          maxLength: atOnce,
        })
        await fc.assert(
          fc.asyncProperty(batch, async (sent) => {
            await Promise.all(
              sent.map(async (each) => {
                const caller = callers[sentCount++ % callers.length]?.project_key
                const { status, text } = await call(base_url, endpoint, {
                  credential: takesAdminKeys(endpoint) ? admin_key : caller,
                  ...each,
                })
                statuses.set(status, (statuses.get(status) ?? 0) + 1)
                expect(status, text).toBeLessThan(500)
              }),
            )
          }),
          {
            numRuns: 1 + Math.ceil(inputs / atOnce),
            // By chance, none of a hundred random requests to some endpoints has everything right.
            examples: [[[exampleRequest(endpoint, existing)]]],
            seed,
            endOnFailure: true,
          },
        )
        // A walk that never got past the checks, or never met one, has proven little.
        expect(
          statuses.get(endpoint.successStatus) ??
            statuses.get(404) ??
            statuses.get(409) ??
            (ofMembers.has(endpoint.id) ? statuses.get(403) : undefined),
        ).toBeGreaterThan(0)
        console.log(endpoint.id, `seed ${seed}`, Object.fromEntries(statuses))
      },
      Math.max(600_000, inputs * 40),
    )
  },
)
