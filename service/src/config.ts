import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

import { z } from 'zod'

import { IssuerTable } from '#access/issuer-table.ts'
import { billingModes } from '#credits/settlement.ts'
import { StripeMode, StripePlans, StripeSecrets } from '#credits/stripe/settings.ts'
import { explainIssue } from '#http/validate.ts'
import { readPrivateTarget } from '#platform/egress-target.ts'
import type { Keyring } from '#platform/secrets.ts'

const splitList = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)

const list = z.string().transform(splitList)
const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    context.addIssue({ code: 'custom', message: 'must be JSON' })
    return z.NEVER
  }
})
const whole = (min: number, max: number, error = `must be a whole number from ${min} to ${max}`) =>
  z
    .string()
    .regex(/^\d+$/, { error, abort: true })
    .transform(Number)
    .refine((value) => value >= min && value <= max, { error })
const port = whole(0, 65_535)

const processesMax = 64
/** `auto` is one per core that this process may use, by its affinity and by the quota of its container. */
const Processes = z
  .string()
  .transform((text) =>
    text === 'auto' ? String(Math.min(availableParallelism(), processesMax)) : text,
  )
  .pipe(whole(1, processesMax, `must be auto or a whole number from 1 to ${processesMax}`))

/** Whether `read` accepts the text without throwing. */
const canRead = (read: (text: string) => unknown) => (text: string) => {
  try {
    read(text)
    return true
  } catch {
    return false
  }
}

/** The drivers decode user, password and database when they connect, and throw at a `%` that is no escape. */
const url = (protocol: RegExp, example: string) =>
  z
    .url({ protocol, error: `must be a URL such as ${example}`, abort: true })
    .refine(canRead(decodeURIComponent), {
      error: 'must have %25 in place of each % that does not begin an escape such as %40',
    })

const address = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])
const ProxyAddress = z.string().refine((text) => address.safeParse(text).success, {
  error: 'must be an IP address or a block such as 10.0.0.0/8',
})

const masterKeysRule =
  'must be version:base64 of at least 32 random bytes, such as the output of echo "1:$(openssl rand -base64 32)"'

/** `2:<base64>,1:<base64>`: the first key writes, the others only read. There is no default, and no short key. */
const MasterKeys = z.string({ error: masterKeysRule }).transform((text, context): Keyring => {
  const keys = splitList(text).map((entry) => {
    const [, version = '', text = ''] = /^(\d{1,5}):([\w+/=-]+)$/.exec(entry) ?? []
    return { version: Number(version), bytes: Buffer.from(text, 'base64') }
  })
  const isGood = ({ version, bytes }: (typeof keys)[number]) =>
    version >= 1 && version <= 65_535 && bytes.length >= 32 && new Set(bytes).size > 8
  const [first, ...others] = keys
  if (!first || !keys.every(isGood) || new Set(keys.map((key) => key.version)).size < keys.length) {
    context.addIssue({ code: 'custom', message: masterKeysRule })
    return z.NEVER
  }
  return [first, ...others]
})

const signingKeysRule =
  'must be version:base64 of exactly 32 random bytes, such as the output of echo "1:$(openssl rand -base64 32)"'

/** As MASTER_KEYS, but seeds of Ed25519 keys: the first one signs checkpoints, the public keys of the others stay published. */
const SigningSeeds = z.string().transform((text, context): Keyring => {
  const seeds = MasterKeys.safeParse(text)
  if (!seeds.success || seeds.data.some(({ bytes }) => bytes.length !== 32)) {
    context.addIssue({ code: 'custom', message: signingKeysRule })
    return z.NEVER
  }
  return seeds.data
})

const publicUrlRule =
  'must be an origin such as https://gateway.example.com, without a path; http is only for a loopback address'

/** An origin: cookies and the checks of requests depend on it. */
const PublicUrl = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url?.hostname ?? '')
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback)
  if (
    url &&
    isSafe &&
    (text === url.origin || text === url.href) &&
    url.href === `${url.origin}/`
  ) {
    return url.origin
  }
  context.addIssue({ code: 'custom', message: publicUrlRule })
  return z.NEVER
})

const PrivateTarget = z.string().refine(canRead(readPrivateTarget), {
  error: 'must be host:port',
})

const Config = z.object({
  ROLES: list.pipe(z.array(z.enum(['api', 'worker'])).min(1)).prefault('api,worker'),
  PROCESSES: Processes.prefault('1'), // how many processes of the role api share the port; auto: one per core
  HOST: z.string().min(1).default('0.0.0.0'), // where the API listens
  PORT: port.prefault('8080'),
  OPERATIONS_HOST: z.string().min(1).default('127.0.0.1'), // metrics and health details; not public by default
  OPERATIONS_PORT: port.prefault('9090'),
  DATABASE_URL: url(/^postgres(ql)?$/, 'postgres://user:<password>@host:5432/gatehouse'),
  DATABASE_POOL_SIZE: whole(2, 200).prefault('10'),
  REDIS_URL: url(/^rediss?$/, 'redis://host:6379').optional(), // shares the counts of limits; changes arrive at once instead of within a second
  REDIS_CLUSTER: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true'), // REDIS_URL names a node of a cluster
  REDIS_DEADLINE_MS: whole(5, 5000).prefault('40'), // how long a command may take before a process uses its own counts
  REDIS_NAMESPACE: z
    .string()
    .regex(/^[\w-]{1,64}$/, { error: 'must have 1 to 64 letters, digits, hyphens or underscores' })
    .default('gatehouse'), // a different one for each deployment on a shared Redis
  MASTER_KEYS: MasterKeys,
  JWT_ISSUERS: jsonText.pipe(IssuerTable).prefault('[]'), // the issuer table (docs/operations.md); empty: no token is accepted
  MODELS_FILE: z.string().min(1).optional(), // the model catalogue (docs/models.md); without it there are no models
  LIMITS_FILE: z.string().min(1).optional(), // the limits of each tier (docs/limits.md); without it those built in
  MODERATION_FILE: z.string().min(1).optional(), // scorers and judge of texts (docs/moderation.md)
  ALLOW_TEST_DOUBLES: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true'), // whether MODERATION_FILE may name scripted scorers; never in production
  STATE_DIRECTORY: z.string().min(1).optional(), // survives restarts: last good copies of policies and keys, and waiting charges
  EGRESS_PRIVATE_TARGETS: list.pipe(z.array(PrivateTarget)).prefault(''), // private host:port addresses that the service may call
  EXPORT_PRIVATE_TARGETS: list.pipe(z.array(PrivateTarget)).prefault(''), // private host:port addresses that export sinks may lead to
  EXPORT_AZURE_LOGIN_URL: url(/^https?$/, 'https://login.microsoftonline.us').optional(), // where Azure gives out tokens, if not login.microsoftonline.com
  EXPORT_S3_FLUSH_SECONDS: whole(0, 3600).prefault('60'), // how long events for S3 wait until an object is full
  EXPORT_ALLOW_INSECURE_TLS: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true'), // whether sinks may ignore the certificates of their destinations
  TRUSTED_PROXIES: list.pipe(z.array(ProxyAddress)).prefault(''), // whose X-Forwarded-For is used
  DOCS_URL: url(/^https?$/, 'https://docs.example.com').optional(), // base of doc_url in error bodies
  RESPONSES_ERRORS: z.enum(['auto', 'flat', 'openai']).default('auto'), // error bodies of /v1/responses; openai: as OpenAI's own clients read them; auto: by the client
  LOG_LEVEL: z.enum(['info', 'warn', 'error', 'silent']).default('info'),
  POLICIES_MAX: whole(1, 1_000_000).prefault('500'), // how many policies an organization may have
  PATTERN_COST_MS_MAX: whole(1, 60_000).prefault('2000'), // what the published patterns of an organization may take together for 8 KB
  ADMIN_REQUESTS_PER_MINUTE: whole(1, 1_000_000).prefault('120'), // of one administrator key
  ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION: whole(1, 1_000_000).prefault('600'), // of all keys of an organization
  ADMIN_CONCURRENT_REQUESTS: whole(1, 10_000).prefault('20'), // concurrent administration calls of an organization
  GATEWAY_SAVES_PER_MINUTE: whole(1, 1_000_000).prefault('10'), // how often an organization may save or restore its gateway configuration
  AUDIT_SIGNING_KEYS: SigningSeeds.optional(), // sign the checkpoints of the audit log; only workers need them
  AUDIT_RETENTION_DAYS: whole(1, 3650).prefault('30'), // how long audit events are kept
  BILLING: z.enum(billingModes).default('prepaid'), // how calls are paid (docs/billing.md)
  CREDIT_HOLD_GRACE_SECONDS: whole(0, 3600).prefault('60'), // how long a hold outlives the longest possible call
  FREE_REQUESTS_PER_DAY: whole(0, 1_000_000).prefault('0'), // free requests of all anonymous callers together; 0: none
  FREE_REQUEST_CREDITS_MAX: whole(1, 1_000_000_000).prefault('100000'), // the highest possible cost of a free request
  STRIPE_WEBHOOK_SECRETS: StripeSecrets.optional(), // whsec_..., several during a rotation (docs/payments.md); without any there is no webhook
  STRIPE_MODE: StripeMode.default('live'), // events of the other mode are ignored
  STRIPE_PLANS: StripePlans.prefault(''), // price_x=developer,prod_y=growth: which plan a subscription gives
  BODY_MEMORY_MB: whole(128, 65_536).prefault('256'), // memory for request bodies while they are received
  CONNECTIONS_MAX: whole(1, 100_000).prefault('10000'),
  UNREADY_SECONDS: whole(0, 60).prefault('5'), // after SIGTERM: how long the process still serves while it reports unready
  DRAIN_SECONDS: whole(0, 3600).prefault('120'), // after that: how long open requests may take to finish
  PUBLIC_URL: PublicUrl.optional(), // where browsers find this gateway; without it there is no sign-in (docs/sign-in.md)
  CONSOLE: z.enum(['true', 'false', 'read_only']).default('true'), // the pages below /console/ (docs/console.md); read_only: sessions change nothing
  SIGN_IN_FILE: z.string().min(1).optional(), // the providers that people sign in with, and which accounts get which role (docs/sign-in.md)
  SIGN_IN_WITH_KEYS: z
    .enum(['true', 'false'])
    .default('true')
    .transform((text) => text === 'true'), // whether administrator keys and the operator's links sign in
  SESSION_MINUTES: whole(1, 10_080).prefault('480'), // how long a person who has signed in stays so, at most
  SESSION_IDLE_MINUTES: whole(5, 10_080).prefault('60'), // how long without a request
  KEY_CACHE_OUTAGE_SECONDS: whole(0, 3600).prefault('600'), // how long cached keys work while PostgreSQL is unreachable
})
export type Config = Readonly<z.infer<typeof Config>>

type Environment = Readonly<Record<string, string | undefined>>

/** The message names every invalid setting and its rule, one per line. */
const invalidConfig = (...lines: string[]) =>
  new Error(['The configuration is not valid:', ...lines].join('\n  '))

/** Reads all settings from the environment. Throws an error that names every invalid one. */
export function loadConfig(environment: Environment): Config {
  const config = load(Config, environment)
  const { ROLES, MODELS_FILE, STATE_DIRECTORY, PROCESSES, REDIS_URL } = config
  if (ROLES.includes('api') && MODELS_FILE !== undefined && STATE_DIRECTORY === undefined) {
    throw invalidConfig(
      'STATE_DIRECTORY: is required with MODELS_FILE, because charges wait there while the database is unreachable',
    )
  }
  if (config.SIGN_IN_FILE !== undefined && config.PUBLIC_URL === undefined) {
    throw invalidConfig(
      'PUBLIC_URL: is required with SIGN_IN_FILE, because providers send browsers back to it',
    )
  }
  if (ROLES.includes('api') && PROCESSES > 1 && REDIS_URL === undefined) {
    throw invalidConfig(
      'REDIS_URL: is required with several PROCESSES, because limits that each counts for itself would multiply',
    )
  }
  return config
}

/** The settings of the operator's commands. */
export const loadOperatorConfig = (environment: Environment) =>
  load(
    Config.pick({
      DATABASE_URL: true,
      MASTER_KEYS: true,
      PUBLIC_URL: true,
      SIGN_IN_WITH_KEYS: true,
    }),
    environment,
  )

/** The settings of `migrate`. */
export const loadMigrationConfig = (environment: Environment) =>
  load(Config.pick({ DATABASE_URL: true }), environment)

function load<Schema extends z.ZodObject>(schema: Schema, environment: Environment) {
  const values = readValues(Object.keys(schema.shape), environment)
  const result = schema.safeParse(values)
  if (!result.success) {
    throw invalidConfig(...result.error.issues.map((issue) => explain(issue, values)))
  }
  return Object.freeze(result.data)
}

/** For these an empty value is an error, not the same as unset: the operator meant to set a secret. */
const neverEmpty = new Set(['STRIPE_WEBHOOK_SECRETS', 'AUDIT_SIGNING_KEYS'])

/** Reads the settings that are set. `NAME_FILE` names a file with the value, as secret stores mount them. */
function readValues(names: readonly string[], environment: Environment): Record<string, string> {
  const values = names.map((name) => {
    const file = environment[`${name}_FILE`]
    const value = environment[name] || (file ? readSecretFile(name, file) : '')
    const isPresent = environment[name] !== undefined || file !== undefined
    return { name, value, isSet: value !== '' || (neverEmpty.has(name) && isPresent) }
  })
  return Object.fromEntries(
    values.filter(({ isSet }) => isSet).map(({ name, value }) => [name, value]),
  )
}

function readSecretFile(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    // Without the path, which may be the secret itself if the operator has mixed up the two variables.
    throw invalidConfig(`${name}_FILE: must be the path of a readable file`)
  }
}

/** Names the setting and the rule, never the value, which may be a secret. */
function explain(issue: z.core.$ZodIssue, values: Record<string, string>): string {
  const { path, rule } = explainIssue(issue, values)
  const isMissing = rule === 'is required' && issue.message.startsWith('must')
  return `${path.join('.')}: ${isMissing ? `is required and ${issue.message}` : rule}`
}
