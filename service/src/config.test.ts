import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { loadConfig, loadOperatorConfig, loadMigrationConfig } from './config.ts'

const keyOf = (seed: number) =>
  Buffer.from(Array.from({ length: 32 }, (_, index) => (index * 7 + seed) % 256)).toString('base64')
const good = {
  DATABASE_URL: 'postgres://user:canary@db/gatehouse',
  MASTER_KEYS: `1:${keyOf(1)}`,
}
const issuer = {
  issuer: 'https://id.example',
  jwks_url: 'https://id.example/keys.json',
  audience: 'gatehouse',
  organizations: ['org_1'],
  permissions: { user: ['model.invoke'] },
}

/** What the process says before it stops; empty when it would start. */
function complaint(change: Record<string, string | undefined>): string {
  try {
    loadConfig({ ...good, ...change })
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

test('two settings are enough, and the others have safe defaults', () => {
  expect(loadConfig(good)).toEqual({
    ROLES: ['api', 'worker'],
    PROCESSES: 1,
    HOST: '0.0.0.0',
    PORT: 8080,
    OPERATIONS_HOST: '127.0.0.1',
    OPERATIONS_PORT: 9090,
    DATABASE_URL: good.DATABASE_URL,
    DATABASE_POOL_SIZE: 10,
    REDIS_NAMESPACE: 'gatehouse',
    MASTER_KEYS: [{ version: 1, bytes: Buffer.from(keyOf(1), 'base64') }],
    JWT_ISSUERS: [],
    EGRESS_PRIVATE_TARGETS: [],
    EXPORT_PRIVATE_TARGETS: [],
    EXPORT_ALLOW_INSECURE_TLS: false,
    EXPORT_S3_FLUSH_SECONDS: 60,
    TRUSTED_PROXIES: [],
    RESPONSES_ERRORS: 'auto',
    LOG_LEVEL: 'info',
    POLICIES_MAX: 500,
    PATTERN_COST_MS_MAX: 2000,
    AUDIT_RETENTION_DAYS: 30,
    ADMIN_REQUESTS_PER_MINUTE: 120,
    ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION: 600,
    ADMIN_CONCURRENT_REQUESTS: 20,
    GATEWAY_SAVES_PER_MINUTE: 10,
    REDIS_CLUSTER: false,
    REDIS_DEADLINE_MS: 40,
    STRIPE_MODE: 'live',
    STRIPE_PLANS: new Map(),
    BODY_MEMORY_MB: 256,
    CONNECTIONS_MAX: 10_000,
    CONSOLE: 'true',
    UNREADY_SECONDS: 5,
    FREE_REQUESTS_PER_DAY: 0,
    FREE_REQUEST_CREDITS_MAX: 100_000,
    ALLOW_TEST_DOUBLES: false,
    BILLING: 'prepaid',
    CREDIT_HOLD_GRACE_SECONDS: 60,
    DRAIN_SECONDS: 120,
    SIGN_IN_WITH_KEYS: true,
    SESSION_MINUTES: 480,
    SESSION_IDLE_MINUTES: 60,
    KEY_CACHE_OUTAGE_SECONDS: 600,
  })
})

test('the configuration is frozen', () => {
  const config = loadConfig(good)
  expect(Object.isFrozen(config)).toBe(true)
  expect(() => Object.assign(config, { PORT: 1 })).toThrow(TypeError)
})

test.each(['DATABASE_URL', 'MASTER_KEYS'])('without %s nothing starts', (name) => {
  for (const value of [undefined, '']) {
    expect(complaint({ [name]: value })).toMatch(
      new RegExp(`^The configuration is not valid:\n  ${name}: `),
    )
  }
})

const canary = 'canary'

test.each([
  ['ROLES', 'api,canary'],
  ['ROLES', ','],
  ['PORT', 'canary'],
  ['PORT', '65536'],
  ['PORT', '-1'],
  ['PORT', '80.5'],
  ['OPERATIONS_PORT', 'canary'],
  ['DATABASE_URL', 'canary'],
  ['DATABASE_URL', 'mysql://user:canary@db/x'],
  ['DATABASE_POOL_SIZE', '1'],
  ['DATABASE_POOL_SIZE', '201'],
  ['REDIS_URL', 'https://:canary@cache'],
  ['DATABASE_URL', 'postgres://user:canary%zz@db/gatehouse'],
  ['REDIS_URL', 'redis://:100%canary@cache'],
  ['REDIS_NAMESPACE', 'canary:canary'],
  ['REDIS_NAMESPACE', 'c'.repeat(65)],
  ['MASTER_KEYS', 'canary'],
  ['JWT_ISSUERS', 'canary'],
  ['JWT_ISSUERS', '{"canary":1}'],
  ['JWT_ISSUERS', JSON.stringify([{ ...issuer, jwks_url: 'ftp://canary' }])],
  ['JWT_ISSUERS', JSON.stringify([{ ...issuer, algorithms: ['HS256'], audience: canary }])],
  ['JWT_ISSUERS', JSON.stringify([{ ...issuer, permissions: { user: ['canary'] } }])],
  ['JWT_ISSUERS', JSON.stringify([issuer, { ...issuer, audience: canary }])],
  ['AUDIT_SIGNING_KEYS', 'canary'],
  ['AUDIT_SIGNING_KEYS', ''],
  ['AUDIT_RETENTION_DAYS', '0'],
  ['EXPORT_PRIVATE_TARGETS', 'canary'],
  ['EXPORT_ALLOW_INSECURE_TLS', 'canary'],
  ['EXPORT_AZURE_LOGIN_URL', 'ftp://canary'],
  ['EXPORT_S3_FLUSH_SECONDS', '3601'],
  ['EXPORT_S3_FLUSH_SECONDS', 'canary'],
  ['TRUSTED_PROXIES', '10.0.0.0/8,canary'],
  ['TRUSTED_PROXIES', '10.0.0.0/33'],
  ['TRUSTED_PROXIES', 'loopback'],
  ['DOCS_URL', 'javascript:canary'],
  ['RESPONSES_ERRORS', 'OpenAI canary'],
  ['LOG_LEVEL', 'canary'],
  ['LOG_LEVEL', 'debug'],
  ['STRIPE_MODE', 'canary'],
  ['CONNECTIONS_MAX', '0'],
  ['UNREADY_SECONDS', '61'],
  ['DRAIN_SECONDS', '3601'],
  ['DRAIN_SECONDS', '-1'],
  ['KEY_CACHE_OUTAGE_SECONDS', '1e9'],
  ['KEY_CACHE_OUTAGE_SECONDS', 'NaN'],
])('an invalid %s is named, and its value %s is not shown', (name, value) => {
  const text = complaint({ [name]: value })
  expect(text).toMatch(new RegExp(`^The configuration is not valid:\n  ${name}(\\.\\S+)?: \\S`))
  expect(text).not.toContain('canary')
  expect(text.split('\n').length).toBe(2)
})

test.each([
  ['DATABASE_URL', '', 'is required and must be a URL such as postgres://'],
  ['DATABASE_URL', 'postgres://user:100%@db/gatehouse', 'must have %25 in place of each %'],
  ['PORT', '65536', 'must be a whole number from 0 to 65535'],
  ['ROLES', 'api,web', 'must be one of api, worker'],
  ['LOG_LEVEL', 'debug', 'must be one of info, warn, error, silent'],
  ['TRUSTED_PROXIES', '10.0.0.0/33', 'must be an IP address or a block such as 10.0.0.0/8'],
  [
    'JWT_ISSUERS',
    JSON.stringify([{ ...issuer, jwks_uri: '' }]),
    "has the unknown member 'jwks_uri'",
  ],
])('an invalid %s is explained by its rule', (name, value, rule) => {
  expect(complaint({ [name]: value })).toContain(`: ${rule}`)
})

/** The rows of the documented table, one for each setting. */
const documented = [
  ...readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8').matchAll(
    /^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \| ([^|]+) \|/gm,
  ),
].flatMap(([, names = '', defaults = '']) => {
  const values = defaults.split(', ')
  return names.split(', ').map((name, index) => ({
    name: name.replaceAll('`', '') as keyof ReturnType<typeof loadConfig>,
    value: values[index] ?? '',
  }))
})

test('the documentation lists the settings', () => {
  expect(documented.length).toBeGreaterThan(30)
})

test.each(documented)('$name has the default that is documented: $value', ({ name, value }) => {
  const usual = loadConfig(good)[name]
  if (value === 'required') expect(complaint({ [name]: undefined })).toContain(name)
  else if (value === 'none') expect(isEmpty(usual), JSON.stringify(usual)).toBe(true)
  else expect(loadConfig({ ...good, [name]: value.replaceAll('`', '') })[name]).toEqual(usual)
})

const isEmpty = (value: unknown) =>
  value === undefined ||
  (value instanceof Map ? value.size : Object.keys(value as object).length) === 0

test('all invalid settings are named at once', () => {
  const text = complaint({ PORT: 'x', LOG_LEVEL: 'x', MASTER_KEYS: 'x' })
  expect(text.match(/^ {2}\w+/gm)).toEqual(['  PORT', '  MASTER_KEYS', '  LOG_LEVEL'])
})

const base64 = (bytes: Buffer) => bytes.toString('base64')

test.each([
  ['no version', keyOf(1)],
  ['an empty key', '1:'],
  ['31 bytes', `1:${base64(Buffer.from(keyOf(1), 'base64').subarray(1))}`],
  ['zeros', `1:${base64(Buffer.alloc(32))}`],
  ['one byte repeated', `1:${base64(Buffer.alloc(64, 0x41))}`],
  ['eight bytes repeated', `1:${base64(Buffer.alloc(64, 'abcdefgh'))}`],
  ['a password', '1:correct-horse-battery'],
  ['version 0', `0:${keyOf(1)}`],
  ['version 65536', `65536:${keyOf(1)}`],
  ['a negative version', `-1:${keyOf(1)}`],
  ['the same version twice', `1:${keyOf(1)},1:${keyOf(2)}`],
  ['the same version in two spellings', `1:${keyOf(1)},01:${keyOf(2)}`],
  ['a bad second key', `2:${keyOf(1)},1:short`],
  ['commas only', ',,'],
  ['padding in the middle', `1:AAAA=${keyOf(1)}`],
])('%s is not a master key', (_, value) => {
  const text = complaint({ MASTER_KEYS: value })
  expect(text).toMatch(
    /^The configuration is not valid:\n {2}MASTER_KEYS: must be version:base64 of at least/,
  )
  expect(text).not.toContain(keyOf(1))
})

test('the first master key writes, the others follow in their order', () => {
  const { MASTER_KEYS } = loadConfig({
    ...good,
    MASTER_KEYS: ` 65535:${keyOf(3)} , 1:${keyOf(1)},2:${keyOf(2)} `,
  })
  expect(MASTER_KEYS.map(({ version }) => version)).toEqual([65_535, 1, 2])
  expect(MASTER_KEYS[1]?.bytes).toEqual(Buffer.from(keyOf(1), 'base64'))
})

test.each([
  ['33 bytes', `1:${base64(Buffer.concat([Buffer.from(keyOf(1), 'base64'), Buffer.alloc(1)]))}`],
  ['31 bytes', `1:${base64(Buffer.from(keyOf(1), 'base64').subarray(1))}`],
  ['the same number twice', `1:${keyOf(1)},1:${keyOf(2)}`],
])('%s: not keys that sign checkpoints', (_, value) => {
  const text = complaint({ AUDIT_SIGNING_KEYS: value })
  expect(text).toMatch(
    /\n {2}AUDIT_SIGNING_KEYS: must be version:base64 of exactly 32 random bytes/,
  )
  expect(text).not.toContain(value.slice(2, 20))
})

test('the first signing key is the one that signs', () => {
  const config = loadConfig({ ...good, AUDIT_SIGNING_KEYS: `2:${keyOf(2)},1:${keyOf(1)}` })
  expect(config.AUDIT_SIGNING_KEYS?.map(({ version }) => version)).toEqual([2, 1])
})

test('the settings can be sent to another process', () => {
  const config = loadConfig({ ...good, AUDIT_SIGNING_KEYS: `1:${keyOf(1)}` })
  // A supervisor sends them, and a function or a key object among them would end it.
  expect(() => structuredClone(config)).not.toThrow()
})

test('lists may have spaces and empty items', () => {
  const config = loadConfig({ ...good, ROLES: ' api ', TRUSTED_PROXIES: '10.0.0.0/8, ,::1,' })
  expect([config.ROLES, config.TRUSTED_PROXIES]).toEqual([['api'], ['10.0.0.0/8', '::1']])
})

test('an issuer is read from JSON', () => {
  const { JWT_ISSUERS } = loadConfig({ ...good, JWT_ISSUERS: JSON.stringify([issuer]) })
  expect(JWT_ISSUERS).toMatchObject([issuer])
})

function fileWith(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'secret'), content)
  return join(folder, 'secret')
}

test('NAME_FILE stands for the content of a file', () => {
  const { MASTER_KEYS, REDIS_NAMESPACE } = loadConfig({
    DATABASE_URL_FILE: fileWith(good.DATABASE_URL),
    REDIS_NAMESPACE_FILE: fileWith('shared\n'),
    MASTER_KEYS_FILE: fileWith(`7:${keyOf(1)}\n`),
  })
  expect(MASTER_KEYS[0].version).toBe(7)
  expect(REDIS_NAMESPACE).toBe('shared')
})

test('a setting wins over its file, unless it is empty', () => {
  const MASTER_KEYS_FILE = fileWith(`7:${keyOf(1)}`)
  expect(loadConfig({ ...good, MASTER_KEYS_FILE }).MASTER_KEYS[0].version).toBe(1)
  const fromFile = loadConfig({ ...good, MASTER_KEYS: '', MASTER_KEYS_FILE })
  expect(fromFile.MASTER_KEYS[0].version).toBe(7)
})

test('an empty file does not set a secret', () => {
  const change = { MASTER_KEYS: undefined, MASTER_KEYS_FILE: fileWith(' \n') }
  expect(complaint(change)).toMatch(/^The configuration is not valid:\n {2}MASTER_KEYS: /)
})

test('unknown variables are ignored', () => {
  expect(loadConfig({ ...good, COLOUR: 'red', COLOUR_FILE: '/nowhere' })).toEqual(loadConfig(good))
})

test('migrations need the address of the database and nothing else', () => {
  const { DATABASE_URL } = good
  expect(loadMigrationConfig({ DATABASE_URL })).toEqual({ DATABASE_URL })
  expect(() => loadMigrationConfig({})).toThrow(/DATABASE_URL/)
})

test('a file that cannot be read is named by its variable, and never shown: it may be the secret', () => {
  const text = complaint({ MASTER_KEYS: undefined, MASTER_KEYS_FILE: `1:${keyOf(1)}` })
  expect(text).toContain('MASTER_KEYS_FILE: must be the path of a readable file')
  expect(text).not.toContain(keyOf(1))
})

test('several secrets of a webhook are read, its mode, and plans by price', () => {
  const secrets = ['whsec_0123456789', 'whsec_9876543210']
  const config = loadConfig({
    ...good,
    STRIPE_WEBHOOK_SECRETS: secrets.join(', '),
    STRIPE_PLANS: 'price_1=growth',
    STRIPE_MODE: 'test',
  })
  expect(config.STRIPE_MODE).toBe('test')
  expect(config.STRIPE_WEBHOOK_SECRETS).toEqual(secrets)
  expect([...config.STRIPE_PLANS]).toEqual([['price_1', 'growth']])
})

test.each([
  ['empty', ''],
  ['blank', '  '],
  ['short', 'whsec_too_short'],
  ['a comma', ','],
  ['good and empty', 'whsec_0123456789,'],
])('a webhook secret that is %s stops the process: it could be guessed', (_, text) => {
  expect(complaint({ STRIPE_WEBHOOK_SECRETS: text })).toContain('STRIPE_WEBHOOK_SECRETS')
})

test('an empty file of webhook secrets stops the process, and so does one that is not named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'secrets')
  writeFileSync(file, '\n')
  for (const name of [file, '']) {
    expect(complaint({ STRIPE_WEBHOOK_SECRETS_FILE: name })).toContain('STRIPE_WEBHOOK_SECRETS')
  }
})

test('MODELS_FILE needs STATE_DIRECTORY, because charges may have to wait there', () => {
  const models = { ...good, MODELS_FILE: '/etc/models.json' }
  expect(() => loadConfig(models)).toThrow('STATE_DIRECTORY: is required with MODELS_FILE')
  expect(loadConfig({ ...models, STATE_DIRECTORY: '/var/lib/gatehouse' }).MODELS_FILE).toBeDefined()
  expect(loadConfig({ ...models, ROLES: 'worker' }).ROLES).toEqual(['worker'])
})

test('the operator needs two values, whatever the service is missing', () => {
  const operator = { ...good, MODELS_FILE: '/etc/models.json', STRIPE_WEBHOOK_SECRETS: '' }
  expect(Object.keys(loadOperatorConfig(operator)).toSorted()).toEqual([
    'DATABASE_URL',
    'MASTER_KEYS',
    'SIGN_IN_WITH_KEYS',
  ])
  expect(() => loadOperatorConfig({ ...good, MASTER_KEYS: '' })).toThrow('MASTER_KEYS: is required')
})

const withRedis = { REDIS_URL: 'redis://r' }

test('PROCESSES is a number, or auto: as many as there are cores', () => {
  const processes = (text: string) =>
    loadConfig({ ...good, ...withRedis, PROCESSES: text }).PROCESSES
  expect(['1', '64', 'auto'].map(processes)).toEqual([1, 64, Math.min(availableParallelism(), 64)])
  for (const wrong of ['0', '65', '-1', '1.5', '2 ', 'all', 'AUTO']) {
    expect(complaint({ ...withRedis, PROCESSES: wrong })).toContain(
      'PROCESSES: must be auto or a whole number from 1 to 64',
    )
  }
})

test('several API processes need Redis, because limits would multiply', () => {
  expect(complaint({ PROCESSES: '2' })).toContain('REDIS_URL: is required with several PROCESSES')
  expect(complaint({ PROCESSES: '2', ...withRedis })).toBe('')
  expect(complaint({ PROCESSES: '1' })).toBe('')
  // Background tasks run in one process, whatever PROCESSES is.
  expect(complaint({ PROCESSES: '2', ROLES: 'worker' })).toBe('')
})
