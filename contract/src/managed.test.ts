import { describe, expect, test } from 'vitest'

import { type Endpoint, errorsOf } from './endpoint.ts'
import { endpoints } from './endpoints.ts'
import { changesManaged, createsManaged } from './managed.ts'
import { toOpenApi } from './openapi.ts'

const all: readonly Endpoint[] = endpoints

/** Changes of things that no set can manage, each with the reason. A new endpoint is declared in its contract, or has its reason here. */
const ofNoSet: Readonly<Record<string, string>> = {
  setProjectMember: 'who belongs to a project is decided by people, as a suspension is',
  createMemberInvitation: 'a link changes nothing of the member that a set describes',
  deleteMemberSession: 'sessions belong to a person, and end whatever a set says',
  deleteMemberSessions: 'sessions belong to a person, and end whatever a set says',
  deleteProjectMember: 'a person leaves a project at once, whatever a set says',
  updateOrganizationSettings: 'they belong to the organization, which no set manages',
  withdrawPolicyApproval: 'it takes back a consent, and changes no policy',
  approveGatewayProposal: 'the change is made for the set of the proposal',
  withdrawGatewayProposal: 'it changes a proposal, which no set manages',
}

const changing = all.filter(({ isIdempotent, managed }) => isIdempotent || managed !== undefined)

test.each(changing)(
  '$id says what the set of a request means to it, or has a reason not to',
  (endpoint) => {
    const isDeclared = endpoint.managed !== undefined
    expect(isDeclared).not.toBe(endpoint.id in ofNoSet)
  },
)

test('every reason belongs to an endpoint', () => {
  const ids = all.map(({ id }) => id)
  expect(Object.keys(ofNoSet).filter((id) => !ids.includes(id))).toEqual([])
})

const declared = all.filter(({ managed }) => managed !== undefined)

test.each(declared)('$id takes the header and the query of its kind', (endpoint) => {
  const { managed, headers, query } = endpoint
  const takes = [
    'X-Gatehouse-Set' in (headers?.shape ?? {}),
    'take_over' in (query?.shape ?? {}),
    errorsOf(endpoint).includes('managed_elsewhere'),
  ]
  expect(takes).toEqual(
    { create: [true, false, false], change: [true, true, true], exempt: [false, false, false] }[
      managed!
    ],
  )
})

type Schema = { $ref?: string; properties?: Record<string, Schema>; items?: Schema }
const document = JSON.parse(JSON.stringify(toOpenApi(endpoints))) as {
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content: Record<string, { schema: Schema }> }> }>
  >
  components: { schemas: Record<string, Schema> }
}

/** Whether the object that an answer shows, alone or in a list, has the member. */
function showsSet(schema: Schema, depth = 3): boolean {
  const { properties, items } = schema.$ref
    ? document.components.schemas[schema.$ref.replace('#/components/schemas/', '')]!
    : schema
  if (properties && 'managed_by' in properties) return true
  const inside = [...Object.values(properties ?? {}), ...(items ? [items] : [])]
  return depth > 0 && inside.some((each) => showsSet(each, depth - 1))
}

/** Where objects are read that a set can manage. */
const collections = declared
  .filter(({ managed }) => managed === 'create')
  .map(({ path }) => path)
  .concat('/api/policy-gateway/config')
const reading = all.filter(
  ({ method, path }) =>
    method === 'GET' &&
    collections.some((each) => path === each || path.replace(/\/:\w+$/, '') === each),
)

describe('managed_by is shown', () => {
  test('by lists and single objects of every kind', () => {
    expect(reading.length).toBeGreaterThanOrEqual(collections.length)
  })

  const created = declared.filter(({ managed }) => managed === 'create')
  test.each([...created, ...reading])('by $id', ({ method, path, successStatus }) => {
    const operation = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
    expect(showsSet(operation.responses[successStatus]!.content['application/json']!.schema)).toBe(
      true,
    )
  })
})

const parse = (set: unknown) => createsManaged.headers.safeParse({ 'X-Gatehouse-Set': set }).success

test.each([
  ['platform-team', true],
  ['a', true],
  ['A'.repeat(80), true],
  ['acme/gateway:prod@eu_1.2', true],
  ['', false],
  ['a'.repeat(81), false],
  ['-a', false],
  ['a b', false],
  ['a, b', false], // two headers, as Node joins them
  ['a,b', false],
  ['é', false],
  ['a\n', false],
  [['a', 'b'], false],
])('the name %j of a set is accepted: %s', (name, isAccepted) => {
  expect(parse(name)).toBe(isAccepted)
})

test.each([
  [undefined, false],
  ['false', false],
  ['true', true],
])('take_over %j means %s', (text, means) => {
  expect(changesManaged.query.parse({ take_over: text })).toEqual({ take_over: means })
})

test.each(['', '1', 'TRUE', 'yes', ['true', 'true']])('take_over %j is refused', (text) => {
  expect(changesManaged.query.safeParse({ take_over: text }).success).toBe(false)
})
