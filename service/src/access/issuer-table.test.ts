import { expect, test } from 'vitest'

import { IssuerTable, permissionsFrom } from './issuer-table.ts'

const given = {
  issuer: 'https://id.example',
  jwks_url: 'https://id.example/keys.json',
  audience: 'gatehouse',
  organizations: ['org_1'],
  permissions: { user: ['model.invoke'], auditor: ['audit.read', 'policies.read'] },
}
const [issuer] = IssuerTable.parse([given])
const accepts = (change: object) => IssuerTable.safeParse([{ ...given, ...change }]).success

test('omitted members have strict defaults', () => {
  expect(issuer).toMatchObject({
    algorithms: ['EdDSA', 'ES256', 'RS256', 'PS256'],
    organization_claim: 'organization_id',
    project_claim: 'project_id',
    permissions_claim: 'scope',
    type: 'JWT',
  })
})

test.each(['HS256', 'HS384', 'HS512', 'none', 'None', 'ES256K', 'RS1', 'dir', ''])(
  'the algorithm %j cannot be configured',
  (algorithm) => {
    expect(accepts({ algorithms: ['ES256', algorithm] })).toBe(false)
    expect(accepts({ algorithms: ['ES256'] })).toBe(true)
  },
)

test.each([
  { algorithms: [] },
  { issuer: '' },
  { issuer: undefined },
  { audience: '' },
  { audience: undefined },
  { organizations: [] },
  { organizations: undefined },
  { permissions: undefined },
  { permissions: { user: ['model.invok'] } },
  { permissions: { user: ['*'] } },
  { permissions: { '': ['model.invoke'] } },
  { jwks_url: 'id.example/keys' },
  { jwks_url: 'file:///etc/keys.json' },
  { jwks_url: 'javascript:alert(1)' },
  { jwks_uri: 'https://id.example/keys.json' }, // an unknown member is a mistake
])('%j is refused', (change) => {
  expect(accepts(change)).toBe(false)
})

test('an issuer can be named only once', () => {
  const other = { ...given, issuer: 'https://other.example' }
  expect(IssuerTable.safeParse([given, other]).success).toBe(true)
  const { error } = IssuerTable.safeParse([given, { ...other, issuer: given.issuer }])
  expect(error?.issues[0]?.message).toBe('must not name an issuer twice')
})

const permissionsOf = (claim: unknown) => [...permissionsFrom(issuer!, claim)]

test.each([
  ['user', ['model.invoke']],
  ['user auditor', ['model.invoke', 'audit.read', 'policies.read']],
  ['openid user profile', ['model.invoke']],
  [' user  user ', ['model.invoke']],
  [['user'], ['model.invoke']],
  [
    ['user', 'auditor', 'user', 7, null],
    ['model.invoke', 'audit.read', 'policies.read'],
  ],
])('the claim %j allows %j', (claim, permissions) => {
  expect(permissionsOf(claim)).toEqual(permissions)
})

test.each([
  ['nobody'],
  ['USER'],
  ['user,auditor'],
  ['model.invoke'], // a permission in a token is not taken as it is
  [['user auditor']],
  [[['user']]],
  [''],
  [[]],
  ['__proto__'],
  ['constructor'],
  ['toString'],
  ['hasOwnProperty valueOf'],
  [['__proto__', 'constructor', 'toString']],
  [{ user: true }],
  [{ length: 1, 0: 'user' }],
  [undefined],
  [null],
  [true],
  [7],
])('the claim %j allows nothing', (claim) => {
  expect(permissionsOf(claim)).toEqual([])
})

test('a table that maps __proto__ grants nothing', () => {
  const text = JSON.stringify([given]).replace('"user"', '"__proto__"')
  const [odd] = IssuerTable.parse(JSON.parse(text))
  for (const claim of ['user', '0', 'toString', 'length', 'nobody']) {
    expect([...permissionsFrom(odd!, claim)]).toEqual([])
  }
  expect({}).not.toHaveProperty('0')
})

test('changing the returned set does not change the table', () => {
  permissionsFrom(issuer!, 'user').add('credits.write')
  expect(permissionsOf('user')).toEqual(['model.invoke'])
})
