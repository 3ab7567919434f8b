import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { dialectOfPath } from '@gatehouse/contract/endpoints'
import { errorBodies } from '@gatehouse/contract/error-body'
import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { afterAll, expect, test, vi } from 'vitest'

import { toSeconds } from '#platform/clock.ts'
import { algorithms, createIssuerDouble, type IssuerDouble } from '#testing/issuer-double.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import {
  createDatabaseProxy,
  createProject,
  createProjectKey,
  createTenant,
  createTestClock,
  createTestGateway,
  type TestPath,
  masterKey,
} from '#testing/test-gateway.ts'

import { setStatus } from './manage-organizations.ts'
import { findProject, saveProject } from './projects/project-store.ts'

const everything = new AsyncDisposableStack()
afterAll(() => everything.disposeAsync())

// jose reads the system's time for its pauses, everything else takes the clock: both move together.
vi.useFakeTimers({ toFake: ['Date'] })
const clock = createTestClock()
const { now } = clock
function pass({ hours = 0, minutes = 0, seconds = 0 }) {
  clock.pass(((hours * 60 + minutes) * 60 + seconds) * 1000)
  vi.setSystemTime(now())
}
pass({})
/** The time that many seconds from now, as claims say it. */
const from = (seconds: number) => toSeconds(now()) + seconds
const day = 24 * 60 * 60

const issuer = everything.use(await createIssuerDouble(now))
/** Configured too, for another organization and with one algorithm only. */
const second = everything.use(await createIssuerDouble(now))
const attacker = everything.use(await createIssuerDouble(now))
const database = everything.use(await createTestDatabase())
const founder = everything.use(await createTestGateway({ databaseUrl: database.url, now }))
const tenant = await createTenant(founder.house)
const foreign = await createTenant(founder.house)
const suspended = await createTenant(founder.house)
await setStatus(suspended.organizationId, 'suspended', founder.house)

const trust = ({ issuer: name, jwksUrl, audience }: IssuerDouble, organizations: string[]) => ({
  issuer: name,
  jwks_url: jwksUrl,
  audience,
  organizations,
  permissions: { use: ['model.invoke'], look: ['policy_gateway.read'], nothing: [] },
})
const table = [
  trust(issuer, [tenant.organizationId, suspended.organizationId, 'org_never_made']),
  { ...trust(second, [foreign.organizationId]), algorithms: ['ES256'] },
]
// Even the attacker's address is open to the service: only ignoring it keeps the service away.
const open = [issuer, second, attacker].map(({ host }) => host).join(',')

/** Processes of one deployment share it. */
const deploymentKey = masterKey(1)

const openGateway = (environment: Record<string, string> = {}) =>
  createTestGateway({
    databaseUrl: database.url,
    now,
    environment: {
      MASTER_KEYS: deploymentKey,
      JWT_ISSUERS: JSON.stringify(table),
      EGRESS_PRIVATE_TARGETS: open,
      ...environment,
    },
  })
const gateway = everything.use(await openGateway())

type Bent = Parameters<IssuerDouble['sign']>[1]
type Claims = Record<string, unknown>

const usual = { organization_id: tenant.organizationId, scope: 'use' }
const sign = (claims: Claims = {}, bent: Bent = {}) => issuer.sign({ ...usual, ...claims }, bent)

async function ask(token: string, more: Record<string, string> = {}, at = gateway) {
  return at.call('/v1/models', { headers: { authorization: `Bearer ${token}`, ...more } })
}
async function codeOf(token: string, more: Record<string, string> = {}, at = gateway) {
  const answer = await ask(token, more, at)
  const { error } = answer.json<{ error?: { code: string } }>()
  return [answer.statusCode, error?.code]
}
const unavailable = [503, 'dependency_unavailable']
const noProject = [404, 'project_not_found']
const inProject = (id: string) => ({ 'x-policy-project': id })

test.each(algorithms)('200: a token signed with %s says who calls', async (alg) => {
  const answer = await ask(await sign({}, { alg }))
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    {
      kind: 'jwt',
      organization_id: tenant.organizationId,
      project_id: tenant.projectId,
      credential_id: `${issuer.issuer}|user-1`,
      permissions: ['model.invoke'],
    },
  ])
})

const bentTokens: [name: string, claims: Claims, bent?: Bent][] = [
  ['is signed with HS256 and the public key', {}, { alg: 'HS256' }],
  ['names an issuer that is not configured', { iss: 'https://elsewhere.example.com' }],
  ['names another configured issuer than its signer', { iss: second.issuer }],
  ['names a list of issuers', { iss: [issuer.issuer] }],
  ['is for another audience', { aud: 'billing' }],
  ['is for a longer audience', { aud: 'gatehouse2' }],
  ['is of another type', {}, { header: { typ: 'at+jwt' } }],
  ['has no type', {}, { header: { typ: undefined } }],
  ...['iss', 'aud', 'sub', 'exp', 'iat', 'organization_id'].map((claim): [string, Claims] => [
    `lacks ${claim}`,
    { [claim]: undefined },
  ]),
  ['has an empty subject', { sub: '' }],
  ['has a subject that is no text', { sub: 7 }],
  ['has an endless subject', { sub: 's'.repeat(201) }],
  ['has a NUL in its subject', { sub: 'a\0b' }],
  ['says when it expires in words', { exp: '2099-01-01' }],
  ['was made in the future', { iat: from(31) }],
  ['is not valid yet', { nbf: from(31) }],
  ['was tampered with', {}, { tampered: { sub: 'root' } }],
  ['lacks the end of its signature', {}, { cut: 4 }],
  ['has an unknown key id', {}, { header: { kid: 'nobody' } }],
  ['has a key id that is a path', {}, { header: { kid: '../../../../dev/null' } }],
  ['has a key id of another algorithm', {}, { alg: 'RS256', header: { kid: 'key-1' } }],
  ['has a critical header we do not know', {}, { header: { crit: ['rule'], rule: 1 } }],
  ['speaks for an organization of another issuer', { organization_id: foreign.organizationId }],
  ['speaks for a list of organizations', { organization_id: [tenant.organizationId] }],
  ['speaks for an organization that does not exist', { organization_id: 'org_never_made' }],
  ['has a project that is no text', { project_id: 7 }],
  ['has an empty project', { project_id: '' }],
]

test.each(bentTokens)('401: a token that %s', async (_, claims, bent) => {
  const answer = await ask(await sign(claims, bent))
  expect([answer.statusCode, answer.json().error]).toMatchObject([401, { code: 'invalid_token' }])
  expect(answer.headers['www-authenticate']).toMatch(
    /^Bearer realm="inference", error="invalid_token", error_description="[^"]+"$/,
  )
})

test('401: a token without signature, however it is written', async () => {
  const unsigned = await sign({}, { alg: 'none' })
  expect(await codeOf(unsigned)).toEqual([401, 'invalid_api_key'])
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '', 0, null]) {
    const named = await sign({}, { alg: 'none', header: { alg } })
    expect(await codeOf(`${named}AA`)).toEqual([401, 'invalid_token'])
  }
})

test('401: an algorithm the issuer may not use, though its key list has the key', async () => {
  const claims = { ...usual, organization_id: foreign.organizationId }
  expect((await ask(await second.sign(claims, { alg: 'ES256' }))).statusCode).toBe(200)
  expect(await codeOf(await second.sign(claims, { alg: 'RS256' }))).toEqual([401, 'invalid_token'])
})

test('clocks may differ by 30 seconds, and a token is used for at most a day', async () => {
  // The clock of the house counts, not that of the system.
  clock.pass(3 * day * 1000)
  const lives: [Claims, unknown[]][] = [
    [{ exp: from(-29) }, [200, undefined]],
    [{ exp: from(-31) }, [401, 'expired_token']],
    [{ iat: from(29), nbf: from(29) }, [200, undefined]],
    [{ iat: from(-day - 29), exp: from(day) }, [200, undefined]],
    [{ iat: from(-day - 31), exp: from(day) }, [401, 'expired_token']],
  ]
  for (const [claims, outcome] of lives) expect(await codeOf(await sign(claims))).toEqual(outcome)
  pass({})
})

test('jku, x5u and jwk in the header are ignored, and no keys are fetched from there', async () => {
  const [jwk] = ((await (await fetch(attacker.jwksUrl)).json()) as { keys: object[] }).keys
  const requestsBefore = attacker.requests()
  const { jwksUrl } = attacker
  const header = { jku: jwksUrl, x5u: jwksUrl, jwk, x5c: ['MIIB'] }
  expect(await codeOf(await sign({}, { header }))).toEqual([200, undefined])
  const forged = { ...usual, iss: issuer.issuer }
  for (const kid of ['key-1', 'nobody', undefined]) {
    const token = await attacker.sign(forged, { header: { ...header, kid } })
    expect(await codeOf(token)).toEqual([401, 'invalid_token'])
  }
  expect(attacker.requests()).toBe(requestsBefore)
})

test('403: a suspended organization', async () => {
  const token = await sign({ organization_id: suspended.organizationId })
  expect(await codeOf(token)).toEqual([403, 'organization_suspended'])
})

test('the token or X-Policy-Project chooses a project of the organization, never another', async () => {
  const other = await createProject(founder.house, tenant.organizationId)
  const archived = await createProject(founder.house, tenant.organizationId)
  await archive(archived)
  const none = await sign()
  const own = await sign({ project_id: other })

  expect((await ask(none, inProject(other))).json()).toMatchObject({ project_id: other })
  expect((await ask(own)).json()).toMatchObject({ project_id: other })
  expect((await ask(own, inProject(other))).json()).toMatchObject({ project_id: other })
  expect(await codeOf(own, inProject(tenant.projectId))).toEqual([403, 'wrong_project'])

  for (const missing of [
    foreign.projectId,
    archived,
    'proj_none',
    "' or 1=1 --",
    'x'.repeat(9000),
  ]) {
    expect(await codeOf(none, inProject(missing))).toEqual(noProject)
  }
  for (const missing of [foreign.projectId, archived, 'proj_none']) {
    expect(await codeOf(await sign({ project_id: missing }))).toEqual(noProject)
  }
})

async function archive(id: string) {
  const project = await findProject(database.db, tenant.organizationId, id)
  await database.db.transaction().execute((tx) =>
    saveProject(tx, tenant.organizationId, {
      ...project!,
      status: 'archived',
      archived_at: now(),
    }),
  )
}

test('permissions come from the issuer table only', async () => {
  const denied = '__proto__ constructor toString hasOwnProperty model.invoke USE us use2 nothing'
  const claims = [
    denied,
    denied.split(' '),
    [['use']],
    { use: true },
    7,
    null,
    undefined,
    '',
    'look',
  ]
  for (const scope of claims) {
    const answer = await ask(await sign({ scope, permissions: ['model.invoke'] }))
    expect([answer.statusCode, answer.json().error.code]).toEqual([403, 'permission_denied'])
    expect(answer.headers['www-authenticate']).toBe(
      'Bearer error="insufficient_scope", scope="model.invoke"',
    )
  }
  const mixed = (await ask(await sign({ scope: `use ${denied}` }))).json()
  expect(mixed).toMatchObject({ permissions: ['model.invoke'] })
  const both = ['model.invoke', 'policy_gateway.read']
  for (const scope of ['use look', 'other look use', ['use', 'look'], ['look', 7, 'use']]) {
    const { permissions } = (await ask(await sign({ scope }))).json<{ permissions: string[] }>()
    expect(permissions.toSorted()).toEqual(both)
  }
})

test('401: a token is the wrong kind on an administration endpoint and in x-api-key', async () => {
  const token = await sign()
  const bearer = { authorization: `Bearer ${token}` }
  const admin = await gateway.call('/v1/organization/policies', { headers: bearer })
  expect([admin.statusCode, admin.json().error.code]).toEqual([401, 'invalid_api_key'])
  expect(admin.headers['www-authenticate']).toMatch(/^Bearer realm="organization", error=/)
  for (const path of ['/v1/models', '/v1/messages/count_tokens'] as const) {
    expect((await gateway.call(path, { headers: bearer })).statusCode).toBe(200)
    const inKeyHeader = await gateway.call(path, { headers: { 'x-api-key': token } })
    expect([inKeyHeader.statusCode, inKeyHeader.json().error.code]).toEqual([
      401,
      'invalid_api_key',
    ])
  }
})

test('tokens with a long common beginning stay apart (CVE-2026-35030)', async () => {
  const [one, two] = [await sign({ zone: 'one' }), await sign({ zone: 'one', sub_2: 1 })]
  const another = await issuer.sign({ ...usual, pad: 'p'.repeat(400), scope: 'look' })
  const padded = await issuer.sign({ ...usual, pad: 'p'.repeat(400), scope: 'use' })
  expect(commonLength(one, two)).toBeGreaterThan(200)
  for (let round = 0; round < 2; round++) {
    expect((await ask(one)).statusCode).toBe(200)
    expect(await codeOf(one.slice(0, -30) + two.slice(-30))).toEqual([401, 'invalid_token'])
    expect((await ask(padded)).statusCode).toBe(200)
    expect(await codeOf(another)).toEqual([403, 'permission_denied'])
  }
})

const commonLength = (one: string, two: string) =>
  one.split('').findIndex((character, index) => character !== two[index])

test('a new key of the issuer is found after the pause, and the one it replaced is gone', async () => {
  await using fresh = await openGateway()
  const before = await sign()
  expect(await codeOf(before, {}, fresh)).toEqual([200, undefined])
  await issuer.rotate()
  const requestsBefore = issuer.requests()
  expect(await codeOf(await sign(), {}, fresh)).toEqual([401, 'invalid_token'])
  expect(issuer.requests()).toBe(requestsBefore)
  pass({ seconds: 31 })
  expect(await codeOf(await sign(), {}, fresh)).toEqual([200, undefined])
  expect(await codeOf(before, {}, fresh)).toEqual([401, 'invalid_token'])
  expect(issuer.requests()).toBe(requestsBefore + 1)
})

test('a flood of unknown key ids causes one request in 30 seconds, and valid tokens keep working', async () => {
  await using fresh = await openGateway()
  const requestsBefore = issuer.requests()
  for (let round = 1; round <= 3; round++) {
    const flood = Array.from({ length: 40 }, async (_, index) =>
      codeOf(await sign({}, { header: { kid: `${round}-${index}` } }), {}, fresh),
    )
    for (const outcome of await Promise.all(flood)) expect(outcome).toEqual([401, 'invalid_token'])
    expect(await codeOf(await sign(), {}, fresh)).toEqual([200, undefined])
    expect(issuer.requests()).toBe(requestsBefore + round)
    pass({ seconds: 31 })
  }
})

test('429: many different refused tokens from one address; valid tokens from there keep working', async () => {
  await using fresh = await openGateway()
  const refusedToken = (index: number) => sign({}, { header: { kid: `unknown-${index}` } })
  const outcomes: unknown[] = []
  for (let index = 0; index < 105; index++) {
    outcomes.push((await codeOf(await refusedToken(index), {}, fresh))[0])
  }
  expect(outcomes).toEqual([...Array<number>(100).fill(401), ...Array<number>(5).fill(429)])
  for (let call = 0; call < 20; call++) {
    expect(await codeOf(await sign(), {}, fresh)).toEqual([200, undefined])
  }
})

test.each(['fails', 'hangs up', 'talks nonsense'] as const)(
  '503: the issuer %s and never answered before; it is called once in 30 seconds',
  async (mood) => {
    await using fresh = await openGateway()
    using _ = inMood(mood)
    const requestsBefore = issuer.requests()
    for (let call = 0; call < 10; call++) {
      const answer = await ask(await sign(), {}, fresh)
      expect([answer.statusCode, answer.json().error.code]).toEqual(unavailable)
      expect(answer.headers).toMatchObject({ 'retry-after': expect.stringMatching(/^\d+$/) })
    }
    expect(issuer.requests()).toBe(requestsBefore + 1)
    const key = await createProjectKey(fresh.house, tenant)
    expect((await fresh.call('/v1/models', { headers: key.headers })).statusCode).toBe(200)
    issuer.become('answers')
    pass({ seconds: 31 })
    expect(await codeOf(await sign(), {}, fresh)).toEqual([200, undefined])
  },
)

function inMood(mood: Parameters<IssuerDouble['become']>[0]) {
  issuer.become(mood)
  return { [Symbol.dispose]: () => issuer.become('answers') }
}

test('503 after three seconds: the issuer does not answer', async () => {
  await using fresh = await openGateway()
  using _ = inMood('hangs')
  const token = await sign()
  const ratio = await waitingRatio('without an issuer', 3000, async () => {
    expect(await codeOf(token, {}, fresh)).toEqual(unavailable)
  })
  expect(ratio).toBeLessThan(4 / 3)
})

test('503: keys are not fetched from a private address the operator did not open', async () => {
  await using closed = await openGateway({ EGRESS_PRIVATE_TARGETS: '' })
  const requestsBefore = issuer.requests()
  expect(await codeOf(await sign(), {}, closed)).toEqual(unavailable)
  expect(issuer.requests()).toBe(requestsBefore)
})

async function openStateDirectory() {
  const path = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  return {
    path,
    copies: async () => (await readdir(path)).filter((name) => name.startsWith('issuer-keys-')),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  }
}

test('the last good copy of the keys serves a new process for a day, not longer', async () => {
  await using directory = await openStateDirectory()
  const state = { STATE_DIRECTORY: directory.path }
  await using first = await openGateway(state)
  expect(await codeOf(await sign(), {}, first)).toEqual([200, undefined])
  const [file = '', ...others] = await directory.copies()
  expect(others).toEqual([])
  expect((await stat(join(directory.path, file))).mode & 0o777).toBe(0o600)

  using _ = inMood('hangs up')
  for (const [minutes, outcome] of [
    [1, [200, undefined]],
    [day / 60 - 2, [200, undefined]],
    [1, unavailable],
  ] as const) {
    pass({ minutes })
    await using next = await openGateway(state)
    expect(await codeOf(await sign(), {}, next)).toEqual(outcome)
  }
  pass({ minutes: 11 })
  expect(await codeOf(await sign(), {}, first)).toEqual(unavailable)
})

test('a copy that was not written by this service is not used', async () => {
  await using directory = await openStateDirectory()
  const state = { STATE_DIRECTORY: directory.path }
  await using first = await openGateway(state)
  expect(await codeOf(await sign(), {}, first)).toEqual([200, undefined])
  const [name = ''] = await directory.copies()
  const file = join(directory.path, name)
  const copy = await readFile(file, 'utf8')
  using _ = inMood('hangs up')
  const [head = '', keys = ''] = copy.split('\n')
  const theirs = await (await fetch(attacker.jwksUrl)).text()
  for (const forged of [`${copy} `, `${head}\n${theirs}`, theirs, keys, '']) {
    await writeFile(file, forged)
    await using next = await openGateway(state)
    expect(await codeOf(await sign(), {}, next)).toEqual(unavailable)
  }
})

test('an answer that is no key list does not replace the last good copy', async () => {
  await using directory = await openStateDirectory()
  const state = { STATE_DIRECTORY: directory.path }
  await using first = await openGateway(state)
  expect(await codeOf(await sign(), {}, first)).toEqual([200, undefined])
  using _ = inMood('talks nonsense')
  pass({ minutes: 11 })
  expect(await codeOf(await sign(), {}, first)).toEqual([200, undefined])
  await using next = await openGateway(state)
  expect(await codeOf(await sign(), {}, next)).toEqual([200, undefined])
})

test('while the database is away, cached tenancies work for ten minutes and others get 503', async () => {
  await using proxy = await createDatabaseProxy(database.url)
  await using at = await openGateway({ DATABASE_URL: proxy.url })
  const stranger = await sign({ organization_id: 'org_never_made' })
  expect(await codeOf(await sign(), {}, at)).toEqual([200, undefined])
  expect(await codeOf(stranger, {}, at)).toEqual([401, 'invalid_token'])
  await proxy.shut()
  // No project is looked up twice within two seconds, and text that cannot be an id not at all.
  expect(await codeOf(stranger, {}, at)).toEqual([401, 'invalid_token'])
  expect(await codeOf(await sign(), inProject('x'.repeat(201)), at)).toEqual(noProject)
  expect(await codeOf(await sign(), inProject('proj_other'), at)).toEqual(unavailable)
  pass({ minutes: 9 })
  expect(await codeOf(await sign(), {}, at)).toEqual([200, undefined])
  expect(await codeOf(stranger, {}, at)).toEqual([401, 'expired_token'])
  pass({ minutes: 1 })
  expect(await codeOf(await sign(), {}, at)).toEqual(unavailable)
  await proxy.reopen()
  await expect.poll(async () => codeOf(await sign(), {}, at)).toEqual([200, undefined])
})

const realms: [TestPath, string][] = [
  ['/v1/models', 'inference'],
  ['/v1/messages', 'inference'],
  ['/v1/messages/count_tokens', 'inference'],
  ['/v1/responses', 'inference'],
  ['/api/policy-gateway/config', 'policy-gateway'],
  ['/v1/organization/policies', 'organization'],
]
test.each(realms)('401: %s answers in its dialect and names the realm %s', async (path, realm) => {
  const expired = { authorization: `Bearer ${await sign({ exp: from(-60) })}` }
  for (const [headers, more] of [
    [{}, /^$/],
    [expired, /^, error="invalid_token", error_description="[^"]+"$/],
    [{ authorization: 'Bearer a.b.c' }, /^, error="invalid_token", error_description="[^"]+"$/],
  ] as const) {
    const answer = await gateway.call(path, { headers })
    expect(answer.statusCode).toBe(401)
    expect(errorBodies[dialectOfPath(path)].safeParse(answer.json()).error).toBeUndefined()
    const [, named, rest] = /^Bearer realm="([a-z-]+)"(.*)$/.exec(
      String(answer.headers['www-authenticate']),
    )!
    expect(named).toBe(realm)
    expect(rest).toMatch(more)
  }
})

test('no token and no part of one is ever logged', async () => {
  const token = await sign({ sub: 'canary' })
  await ask(token)
  await ask(`${token}x`)
  const [, payload = '', signature = ''] = token.split('.')
  const logged = gateway.lines.join('\n')
  expect(logged).toContain('canary')
  for (const part of [payload, signature]) expect(logged).not.toContain(part)
})
