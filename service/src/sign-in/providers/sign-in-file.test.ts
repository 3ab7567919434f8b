import { expect, test } from 'vitest'

import { parseSignInFile } from './sign-in-file.ts'

const provider = {
  id: 'corp',
  name: 'Example Corp',
  issuer: 'https://login.example.com',
  client_id: 'gatehouse',
  client_secret: { env: 'CORP_SECRET' },
}
const mapping = { group: 'staff', organization: 'org_1', role: 'viewer' }

const complaint = (file: unknown): string => {
  try {
    parseSignInFile(typeof file === 'string' ? file : JSON.stringify(file, null, 1))
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('nothing is wrong')
}
const ofProvider = (changes: object) => complaint({ providers: [{ ...provider, ...changes }] })
const ofMapping = (changes: object) =>
  complaint({ providers: [provider], mappings: [{ ...mapping, ...changes }] })

test('what a file leaves out has the values that most providers use, and it makes no members by default', () => {
  const { providers, mappings, create_members } = parseSignInFile(
    JSON.stringify({ providers: [provider] }),
  )
  expect(create_members).toBe(false)
  expect(mappings).toEqual([])
  expect(providers[0]).toMatchObject({
    scopes: ['openid', 'profile', 'email'],
    claims: {
      groups: 'groups',
      app_roles: 'roles',
      email: 'email',
      email_verified: 'email_verified',
      name: 'name',
    },
  })
})

test('each problem has its line', () => {
  const text = `{\n "providers": [\n  {"id": "A B"}\n ],\n "mapping": []\n}`
  expect(complaint(text).split('\n')).toEqual([
    '  line 3: providers[0].id: must begin with a lower-case letter and have 1 to 32 lower-case letters, digits or hyphens',
    '  line 3: providers[0].name: is required',
    '  line 3: providers[0].issuer: is required',
    '  line 3: providers[0].client_id: is required',
    '  line 3: providers[0].client_secret: must be {"env": "VARIABLE"} or {"file": "/path"}, never the key itself',
    "  line 1: the file: has no member 'mapping'",
  ])
  expect(complaint('{"providers": [}')).toContain('line 1, column 16: it is not JSON')
  expect(complaint('{"providers": [], "providers": []}')).toContain('providers: is given twice')
})

test.each([
  [{ id: 'link' }, 'id: must not be link, which /auth/link uses'],
  [{ id: 'a_b' }, 'id: must begin with a lower-case letter'],
  [{ client_secret: 'canary' }, 'client_secret: must be {"env": "VARIABLE"}'],
  [{ scopes: ['profile'] }, 'scopes: must have openid'],
  [{ scopes: ['openid profile'] }, 'scopes[0]: must be a scope, without spaces'],
  [{ issuer: 'login.example.com' }, 'issuer: must be an address such as'],
  [{ issuer: 'https://a:b@login.example.com' }, 'issuer: must not have a user name'],
  [
    { issuer: 'https://login.example.com/?a=b' },
    'issuer: must not have a user name, a password, a query',
  ],
  [
    { issuer: 'https://login.microsoftonline.com/common/v2.0' },
    'issuer: must have the id of your tenant',
  ],
  [
    { claims: { email_verified: false } },
    'claims.email_verified: must be the name of a claim, or true',
  ],
  [{ claims: { roles: 'roles' } }, "claims: has no member 'roles'"],
])('a provider with %j is refused', (changes, words) => {
  expect(ofProvider(changes)).toContain(`providers[0].${words}`)
  expect(ofProvider(changes)).not.toContain('canary')
})

test.each([
  [{ email: 'ada@example.com' }, '[0]: must have exactly one of group, app_role, domain, email'],
  [{ group: undefined }, '[0]: must have exactly one of group, app_role, domain, email'],
  [{ group: undefined, domain: 'Example.com' }, '[0].domain: must be a domain in lower case'],
  [{ group: undefined, domain: '@example.com' }, '[0].domain: must be a domain in lower case'],
  [{ group: undefined, domain: '*.example.com' }, '[0].domain: must be a domain in lower case'],
  [{ group: undefined, email: 'Ada@example.com' }, '[0].email: must be an address in lower case'],
  [{ role: 'administrator' }, '[0].role: must be one of owner, admin'],
  [{ organization: 'Example' }, '[0].organization: must be an id such as org_…'],
  [{ provider: 'other' }, '[0].provider: is the id of no provider'],
])('a mapping with %j is refused', (changes, words) => {
  expect(ofMapping(changes)).toContain(`mappings${words}`)
})

test('with several providers each mapping names its own, because group names are not shared', () => {
  const providers = [provider, { ...provider, id: 'partner' }]
  expect(complaint({ providers, mappings: [mapping] })).toContain(
    'mappings[0].provider: is required, because there are several providers',
  )
  expect(complaint({ providers: [provider, provider] })).toContain(
    'providers[1].id: is the id of another provider too',
  )
})

test('two providers with one issuer are refused, because sessions and accounts are known by it', () => {
  const providers = [provider, { ...provider, id: 'partner', issuer: `${provider.issuer}/` }]
  expect(complaint({ providers, mappings: [] })).toContain(
    'providers[1].issuer: is the issuer of another provider too',
  )
})
