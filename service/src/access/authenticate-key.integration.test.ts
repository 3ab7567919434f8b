import { randomBytes } from 'node:crypto'

import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'

import { operator } from '#audit/event.ts'
import { connectDatabase } from '#platform/database.ts'
import type { Tx } from '#platform/database.ts'
import { createLog } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import {
  createDatabaseProxy,
  createProject,
  createProjectKey,
  createTenant,
  createTestClock,
  createTestGateway,
  masterKey,
  type TestGateway,
  type TestPath,
} from '#testing/test-gateway.ts'

import { createKeyUses } from './key-uses.ts'
import { revokeKey } from './keys/key-store.ts'
import { setStatus } from './manage-organizations.ts'
import { findProject, saveProject } from './projects/project-store.ts'
import { formatKey, type KeyPrefix } from './secret.ts'

const everything = new AsyncDisposableStack()
afterAll(() => everything.disposeAsync())

const clock = createTestClock()
const { now } = clock
const seconds = (count: number) => count * 1000
const database = everything.use(await createTestDatabase())
const MASTER_KEYS = masterKey(1)

const openGateway = (environment: Record<string, string> = {}, databaseUrl = database.url) =>
  createTestGateway({ databaseUrl, now, environment: { MASTER_KEYS, ...environment } })
const gateway = everything.use(await openGateway())
const { house } = gateway
const tenant = await createTenant(house)

const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
/** A well-formed key that does not exist. */
const guess = (prefix: KeyPrefix = 'gate_prj_') => formatKey(prefix, randomBytes(32))

type Headers = Record<string, string>
type Asked = { at?: TestGateway; path?: TestPath; from?: string }

async function ask(headers: Headers, { at = gateway, path = '/v1/models', from }: Asked = {}) {
  return at.call(path, { headers, ...(from && { from }) })
}
async function codeOf(headers: Headers, asked: Asked = {}) {
  const answer = await ask(headers, asked)
  return [answer.statusCode, answer.json<{ error?: { code: string } }>().error?.code]
}
const welcome = [200, undefined]
const unknown = [401, 'invalid_api_key']
const away = [503, 'dependency_unavailable']

const onAdmin = { path: '/v1/organization/policies' } as const

test('200: a project key identifies the caller, in Authorization or in x-api-key', async () => {
  const key = await createProjectKey(house, tenant, { permissions: ['model.invoke'] })
  for (const headers of [
    key.headers,
    { 'x-api-key': key.value },
    { authorization: `bearer   ${key.value} ` },
  ]) {
    const answer = await ask(headers)
    expect([answer.statusCode, answer.json()]).toEqual([
      200,
      {
        kind: 'project_key',
        organization_id: tenant.organizationId,
        project_id: tenant.projectId,
        credential_id: key.id,
        permissions: ['model.invoke'],
      },
    ])
  }
})

test('200: an administrator key identifies the caller, without a project', async () => {
  const answer = await ask(bearer(tenant.adminKey), onAdmin)
  expect(answer.json()).toMatchObject({ kind: 'admin_key', project_id: null })
})

test('401: a wrong Authorization header is not replaced by a good x-api-key', async () => {
  const { value } = await createProjectKey(house, tenant)
  for (const authorization of [
    '',
    'Bearer',
    'Bearer x',
    'Basic YTpi',
    value,
    `Bearer ${guess()}`,
  ]) {
    expect(await codeOf({ authorization, 'x-api-key': value })).toEqual(unknown)
  }
})

test('401: a missing credential names the realm and no error', async () => {
  for (const [headers, asked, realm] of [
    [{}, {}, 'inference'],
    [{ 'x-api-key': tenant.adminKey }, onAdmin, 'organization'],
  ] as const) {
    const answer = await ask(headers, asked)
    expect([answer.statusCode, answer.json().error.code]).toEqual([401, 'missing_credentials'])
    expect(answer.headers['www-authenticate']).toBe(`Bearer realm="${realm}"`)
  }
})

test('401: a key of the wrong kind, in either header', async () => {
  const { headers } = await createProjectKey(house, tenant)
  expect(await codeOf(headers, onAdmin)).toEqual(unknown)
  expect(await codeOf(bearer(tenant.adminKey))).toEqual(unknown)
  expect(await codeOf({ 'x-api-key': tenant.adminKey })).toEqual(unknown)
})

test('401: an unknown key, and a known one with a mistyped character', async () => {
  const { value } = await createProjectKey(house, tenant)
  const mistyped = value.slice(0, 20) + (value[20] === 'a' ? 'b' : 'a') + value.slice(21)
  for (const wrong of [guess(), mistyped, value.slice(0, -1), `${value}x`]) {
    const answer = await ask(bearer(wrong), { from: '192.0.2.77' })
    expect([answer.statusCode, answer.json().error.code]).toEqual(unknown)
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer realm="inference", error="inv/)
  }
})

const tell = (tx: Tx, notifies: 'api_key' | 'project', id: string) =>
  house.announce(tx, {
    organizationId: tenant.organizationId,
    by: operator,
    action: 'deleted',
    notifies,
    before: { id, object: 'test' },
    after: null,
  })

test('401: a revoked key, although it was known a moment ago', async () => {
  const key = await createProjectKey(house, tenant)
  expect(await codeOf(key.headers)).toEqual(welcome)
  await transact(house.db, async (tx) => {
    await revokeKey(tx, tenant, key.id, now())
    await tell(tx, 'api_key', key.id)
  })
  await expect.poll(() => codeOf(key.headers)).toEqual([401, 'revoked_api_key'])
})

test('401: a key from the very moment it expires, although it is cached', async () => {
  const { headers } = await createProjectKey(house, tenant, { expires_in_seconds: 30 })
  clock.pass(seconds(30) - 1)
  expect(await codeOf(headers)).toEqual(welcome)
  clock.pass(1)
  expect(await codeOf(headers)).toEqual([401, 'expired_api_key'])
})

test('401: a key of an archived project', async () => {
  const { organizationId } = tenant
  const projectId = await createProject(house, organizationId)
  const { headers } = await createProjectKey(house, { organizationId, projectId })
  expect(await codeOf(headers)).toEqual(welcome)
  const project = (await findProject(house.db, organizationId, projectId))!
  await transact(house.db, async (tx) => {
    await saveProject(tx, organizationId, { ...project, status: 'archived', archived_at: now() })
    await tell(tx, 'project', projectId)
  })
  await expect.poll(() => codeOf(headers)).toEqual([401, 'revoked_api_key'])
})

test('403: every key of a suspended organization, until it is reinstated', async () => {
  const other = await createTenant(house)
  const { headers } = await createProjectKey(house, other)
  const admin = bearer(other.adminKey)
  const both = async () => [await codeOf(headers), await codeOf(admin, onAdmin)]
  expect(await both()).toEqual([welcome, welcome])
  await setStatus(other.organizationId, 'suspended', house)
  const refused = [403, 'organization_suspended']
  await expect.poll(both).toEqual([refused, refused])
  await setStatus(other.organizationId, 'active', house)
  await expect.poll(both).toEqual([welcome, welcome])
})

test('403: a permission that no release knows grants nothing, nor does an empty list', async () => {
  const key = await createProjectKey(house, tenant)
  for (const permissions of [['model.invoke2', '*', ''], []]) {
    await setPermissions(key.id, permissions)
    const answer = await ask(key.headers)
    expect([answer.statusCode, answer.json().error.code]).toEqual([403, 'permission_denied'])
    expect(answer.headers['www-authenticate']).toBe(
      'Bearer error="insufficient_scope", scope="model.invoke"',
    )
  }
  await setPermissions(key.id, ['model.invoke2', 'model.invoke', '*'])
  expect((await ask(key.headers)).json()).toMatchObject({ permissions: ['model.invoke'] })
})

/** As another release might have written them, and long enough ago to be read anew. */
async function setPermissions(id: string, permissions: string[]) {
  await database.db.updateTable('api_key').set({ permissions }).where('id', '=', id).execute()
  clock.pass(seconds(61))
}

/** Tries keys one after the other; the statuses they got. */
async function tryKeys(values: readonly string[], asked: (index: number) => Asked) {
  const statuses: number[] = []
  for (const [index, value] of values.entries()) {
    statuses.push((await ask(bearer(value), asked(index))).statusCode)
  }
  return statuses
}
const guesses = (count: number) => Array.from({ length: count }, () => guess())
const refusals = (count: number) => Array<number>(count).fill(401)

test('429: eleven different unknown keys from one address, and twice as long the next time', async () => {
  await using at = await openGateway()
  const key = await createProjectKey(at.house, tenant)
  const from = '198.51.100.7'
  for (const waitSeconds of [60, 120]) {
    expect(await codeOf(key.headers, { at, from })).toEqual(welcome)
    const tried = await tryKeys(guesses(11), () => ({ at, from }))
    expect(tried.slice(0, 9)).toEqual(refusals(9)) // the round before has left one guess
    expect(tried.at(-1)).toBe(429)

    const refused = await ask(bearer(guess()), { at, from })
    expect([refused.statusCode, refused.json().error.code]).toEqual([429, 'rate_limit_exceeded'])
    expect(refused.headers['retry-after']).toBe(String(waitSeconds))
    expect(await codeOf(key.headers, { at, from })).toEqual(welcome)
    expect(await codeOf(bearer(guess()), { at, from: '198.51.100.8' })).toEqual(unknown)

    clock.pass(seconds(waitSeconds) - 1)
    await ask(bearer(guess()), { at, from }) // one key a second is still looked up
    expect((await ask(bearer(guess()), { at, from })).statusCode).toBe(429)
    clock.pass(1)
    expect(await codeOf(bearer(guess()), { at, from })).toEqual(unknown)
  }
})

test('429: an IPv6 network counts as one address, and mapped IPv4 addresses as themselves', async () => {
  await using at = await openGateway()
  const network = (index: number) => ({ at, from: `2001:db8:1:2:${index}::${index}` })
  await tryKeys(guesses(11), network)
  expect((await ask(bearer(guess()), network(99))).statusCode).toBe(429)
  expect(await codeOf(bearer(guess()), { at, from: '2001:db8:1:3::1' })).toEqual(unknown)
  const mapped = (index: number) => ({ at, from: `::ffff:203.0.113.${index}` })
  expect(await tryKeys(guesses(25), mapped)).toEqual(refusals(25))
})

test('429: more than twenty keys that begin alike, from anywhere', async () => {
  await using at = await openGateway()
  const start = randomBytes(12)
  const alike = () => formatKey('gate_prj_', Buffer.concat([start, randomBytes(20)]))
  const anywhere = (index: number) => ({ at, from: `203.0.113.${index}` })
  const tried = await tryKeys(Array.from({ length: 21 }, alike), anywhere)
  expect(tried.slice(0, 20)).toEqual(refusals(20))
  expect((await ask(bearer(alike()), anywhere(200))).statusCode).toBe(429)
  expect(await codeOf(bearer(guess()), anywhere(200))).toEqual(unknown)
})

test('401: one wrong key, however often it is repeated, blocks no caller', async () => {
  await using at = await openGateway()
  const key = guess()
  for (let round = 0; round < 50; round++) {
    expect(await codeOf(bearer(key), { at })).toEqual(unknown)
    // Beyond the two seconds for which an unknown key is remembered.
    clock.pass(2001)
  }
  expect(await codeOf((await createProjectKey(at.house, tenant)).headers, { at })).toEqual(welcome)
})

test('a key survives the rotation of master keys and moves to the new one when it is used', async () => {
  const [one, two] = [masterKey(1), masterKey(2)]
  await using old = await openGateway({ MASTER_KEYS: one })
  const key = await createProjectKey(old.house, tenant)
  const idle = await createProjectKey(old.house, tenant)
  const versions = async () => {
    const rows = await database.db
      .selectFrom('api_key')
      .select(['id', 'hash_version'])
      .where('id', 'in', [key.id, idle.id])
      .execute()
    return Object.fromEntries(rows.map(({ id, hash_version }) => [id, hash_version]))
  }
  await using both = await openGateway({ MASTER_KEYS: `${two},${one}` })
  expect(await versions()).toEqual({ [key.id]: 1, [idle.id]: 1 })
  expect(await codeOf(key.headers, { at: both })).toEqual(welcome)
  await expect.poll(versions).toEqual({ [key.id]: 2, [idle.id]: 1 })
  clock.pass(seconds(61))
  expect(await codeOf(key.headers, { at: both })).toEqual(welcome)

  await using alone = await openGateway({ MASTER_KEYS: two })
  expect(await codeOf(key.headers, { at: alone })).toEqual(welcome)
  expect(await codeOf(idle.headers, { at: alone })).toEqual(unknown)
  // The same number with other bytes is another master key.
  await using other = await openGateway({ MASTER_KEYS: masterKey(2) })
  expect(await codeOf(key.headers, { at: other })).toEqual(unknown)
})

const lastUse = async (id: string) => {
  const { last_used_at } = await database.db
    .selectFrom('api_key')
    .select('last_used_at')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return last_used_at
}

test('the time of the last use is written in a batch, and never goes back', async () => {
  const key = await createProjectKey(house, tenant)
  const start = now()
  {
    await using at = await openGateway()
    expect(await codeOf(key.headers, { at })).toEqual(welcome)
    clock.pass(5000)
    expect(await codeOf(key.headers, { at })).toEqual(welcome)
    expect(await lastUse(key.id)).toBeNull()
  }
  const latest = new Date(start.getTime() + 5000)
  expect(await lastUse(key.id)).toEqual(latest)
  {
    await using late = await openGateway()
    clock.pass(-3000)
    expect(await codeOf(key.headers, { at: late })).toEqual(welcome)
    clock.pass(3000)
  }
  expect(await lastUse(key.id)).toEqual(latest)
})

test('processes that write the same uses at once do not deadlock', async () => {
  const { organizationId } = tenant
  await sql`
    insert into api_key (organization_id, id, kind, name, key_hash, hash_version, hint8, last4,
      permissions, created_at)
    select ${organizationId}, 'many_' || n, 'admin', 'Many', sha256(n::text::bytea), 1, 'aaaaaaaa',
      'aaaa', '{}', now()
    from generate_series(1, 800) as n`.execute(database.db)
  const ids = Array.from({ length: 800 }, (_, index) => `many_${index + 1}`)
  const problems: string[] = []
  const log = createLog('error', { write: (line) => problems.push(line) })
  for (let round = 1; round <= 5; round++) {
    const writers = [ids, ids.toReversed()].map((order) => {
      const uses = createKeyUses(database.db, log)
      const usedAt = new Date(now().getTime() + round)
      for (const keyId of order) uses.note({ organizationId, keyId, usedAt })
      return uses.stop()
    })
    await Promise.all(writers)
  }
  expect(problems).toEqual([])
})

test('a use that could not be written is written later, and the latest use counts', async () => {
  const key = await createProjectKey(house, tenant)
  const { organizationId } = tenant
  await using proxy = await createDatabaseProxy(database.url)
  const db = connectDatabase({ url: proxy.url, poolSize: 2 })
  const uses = createKeyUses(db, silentLog)
  const usedAt = now()
  uses.note({ organizationId, keyId: key.id, usedAt })
  uses.note({ organizationId, keyId: key.id, usedAt: new Date(usedAt.getTime() - 1000) })
  await proxy.shut()
  await uses.stop()
  await proxy.reopen()
  await uses.stop()
  expect(await lastUse(key.id)).toEqual(usedAt)
  await db.destroy()
})

/** What attackers send: queries, binary, the shapes of keys and tokens with something wrong in them. */
const attack = fc.oneof(
  fc.constantFrom(
    "' or 1=1 --",
    "'; drop table api_key; --",
    '1) union select key_hash from api_key --',
    '$1',
    '${sql}',
    '{{7*7}}',
    "gate_prj_' or ''='",
    'gate_prj_%00',
    `gate_prj_${'0'.repeat(49)}`,
    `gate_adm_${'0'.repeat(43)}2tvo1y`,
    '.'.repeat(3000),
    'a.b.c',
    'eyJhbGciOiJub25lIn0.eyJpc3MiOiIn IG9yIDE9MSJ9.',
  ),
  fc.string({ unit: 'binary-ascii', maxLength: 300 }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  fc.string({ unit: fc.constantFrom(...Array.from('0Az_-.\'";%')), maxLength: 80 }),
  fc.stringMatching(/^gate_(adm|prj)_[0-9A-Za-z]{49}$/),
  fc.stringMatching(/^[\w-]{1,40}\.[\w-]{1,40}\.[\w-]{1,40}$/),
)
const schemes = fc.constantFrom('Bearer ', 'bearer ', 'Bearer  ', '', 'Basic ', 'Bearer\t')

test('401 without a query: malformed credentials (CVE-2026-42208)', async () => {
  await using proxy = await createDatabaseProxy(database.url)
  await using at = await openGateway({}, proxy.url)
  await proxy.shut()
  // With the database away, a query would show as 503.
  expect(await codeOf(bearer(guess()), { at })).toEqual(away)
  const paths = fc.constantFrom<TestPath>('/v1/models', '/v1/organization/policies')
  await fc.assert(
    fc.asyncProperty(schemes, attack, paths, async (scheme, text, path) => {
      const headers = { authorization: scheme + text, 'x-api-key': text }
      for (const sent of [{ authorization: headers.authorization }, headers]) {
        const answer = await ask(sent, { at, path })
        expect(answer.statusCode).toBe(401)
        expect(answer.headers['www-authenticate']).toMatch(/^Bearer realm="[a-z]+"/)
      }
      const inKeyHeader = await ask({ 'x-api-key': text }, { at })
      expect(inKeyHeader.statusCode).toBe(401)
    }),
    { numRuns: 500 },
  )
})

test('while the database is away, known keys answer for ten minutes and unknown ones get 503', async () => {
  await using proxy = await createDatabaseProxy(database.url)
  await using at = await openGateway({ KEY_CACHE_OUTAGE_SECONDS: '600' }, proxy.url)
  const key = await createProjectKey(at.house, tenant, { expires_in_seconds: 500 })
  const lasting = await createProjectKey(at.house, tenant)
  const never = await createProjectKey(at.house, tenant)
  for (const { headers } of [key, lasting]) expect(await codeOf(headers, { at })).toEqual(welcome)
  await proxy.shut()

  for (const headers of [bearer(guess()), never.headers]) {
    const answer = await ask(headers, { at })
    expect([answer.statusCode, answer.json().error.code]).toEqual(away)
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/)
  }
  expect(await codeOf(lasting.headers, { at })).toEqual(welcome)
  clock.pass(seconds(499))
  expect(await codeOf(lasting.headers, { at })).toEqual(welcome)
  expect(await codeOf(key.headers, { at })).toEqual(welcome)
  clock.pass(seconds(1))
  expect(await codeOf(key.headers, { at })).toEqual([401, 'expired_api_key'])
  clock.pass(seconds(99))
  expect(await codeOf(lasting.headers, { at })).toEqual(welcome)
  clock.pass(seconds(1))
  expect(await codeOf(lasting.headers, { at })).toEqual(away)

  await proxy.reopen()
  await expect.poll(() => codeOf(lasting.headers, { at })).toEqual(welcome)
  expect(await codeOf(never.headers, { at })).toEqual(welcome)
  expect(await codeOf(bearer(guess()), { at })).toEqual(unknown)
})

test('unknown keys whose lookup failed do not count as guesses', async () => {
  await using proxy = await createDatabaseProxy(database.url)
  await using at = await openGateway({}, proxy.url)
  const late = await createProjectKey(at.house, tenant)
  await proxy.shut()
  const tried = await tryKeys(guesses(30), () => ({ at }))
  expect(new Set(tried)).toEqual(new Set([503]))
  await proxy.reopen()
  await expect.poll(() => codeOf(late.headers, { at })).toEqual(welcome)
})
