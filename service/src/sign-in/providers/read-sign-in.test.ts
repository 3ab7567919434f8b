import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { readSignIn } from './read-sign-in.ts'

const provider = {
  id: 'corp',
  name: 'Example Corp',
  issuer: 'https://login.example.com',
  client_id: 'gatehouse',
  client_secret: { env: 'CORP_SECRET' },
}
const read = (file: object) => readSignIn(JSON.stringify(file), () => 'secret')

test('the example file can be used', () => {
  const example = new URL('../../../../deploy/sign-in.example.json', import.meta.url)
  const { providers, createsMembers } = readSignIn(readFileSync(example, 'utf8'), () => 'secret')
  expect(createsMembers).toBe(true)
  expect(providers.map(({ mappings }) => mappings.length)).toEqual([2])
})

test('a mapping belongs to one provider, which is the only one where none is named', () => {
  const mapping = { group: 'staff', organization: 'org_1', role: 'viewer' }
  expect(read({ providers: [provider], mappings: [mapping] }).providers[0]?.mappings).toEqual([
    { trait: 'group', value: 'staff', organizationId: 'org_1', role: 'viewer' },
  ])
  const { providers } = read({
    providers: [provider, { ...provider, id: 'partner', issuer: 'https://login.example.net' }],
    mappings: [{ ...mapping, provider: 'partner' }],
  })
  expect(providers.map(({ mappings }) => mappings.length)).toEqual([0, 1])
})

test('an account at Google belongs to the domain that manages it, not to the domain of its address', () => {
  const claims = (issuer: string) =>
    read({ providers: [{ ...provider, issuer }] }).providers[0]?.claims
  expect(claims('https://accounts.google.com')?.hostedDomain).toBe('hd')
  expect(claims('https://login.example.com')?.hostedDomain).toBeNull()
})

test('a secret that cannot be read is named by its place', () => {
  const fail = () =>
    readSignIn(JSON.stringify({ providers: [provider] }), () => {
      throw new Error('the environment variable CORP_SECRET is not set')
    })
  expect(fail).toThrow(
    'providers[0].client_secret: the environment variable CORP_SECRET is not set',
  )
})
