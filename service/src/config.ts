import { readFileSync } from 'node:fs'

import { z } from 'zod'

import { IssuerTable } from '#access/issuer-table.ts'
import { StripeMode, StripePlans, StripeSecrets } from '#credits/stripe/settings.ts'
import { readPrivateTarget } from '#platform/egress-target.ts'
import type { Keyring } from '#platform/secrets.ts'

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean),
)
const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    context.addIssue({ code: 'custom', message: 'must be JSON' })
    return z.NEVER
  }
})
const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, { error: 'must be a whole number', abort: true })
    .transform(Number)
    .pipe(z.int().min(min).max(max))
const port = whole(0, 65_535)

/** `2:<base64>,1:<base64>`: the first writes, the others still read. No default, nothing short. */
const MasterKeys = list.transform((entries, context): Keyring => {
  const keys = entries.map((entry) => {
    const [, version = '', text = ''] = /^(\d{1,5}):([\w+/=-]+)$/.exec(entry) ?? []
    return { version: Number(version), bytes: Buffer.from(text, 'base64') }
  })
  const isGood = ({ version, bytes }: (typeof keys)[number]) =>
    version >= 1 && version <= 65_535 && bytes.length >= 32 && new Set(bytes).size > 8
  const [first, ...others] = keys
  if (!first || !keys.every(isGood) || new Set(keys.map((key) => key.version)).size < keys.length) {
    context.addIssue({
      code: 'custom',
      message:
        'must be version:base64 of at least 32 random bytes, for example 1:$(openssl rand -base64 32)',
    })
    return z.NEVER
  }
  return [first, ...others]
})

/** Does reading it succeed? */
const canRead = (read: (text: string) => unknown) => (text: string) => {
  try {
    read(text)
    return true
  } catch {
    return false
  }
}
const PrivateTarget = z.string().refine(canRead(readPrivateTarget), { error: 'must be host:port' })

const Config = z.object({
  ROLES: list.pipe(z.array(z.enum(['api', 'worker'])).min(1)).prefault('api,worker'),
  HOST: z.string().min(1).default('0.0.0.0'), // where the API listens
  PORT: port.prefault('8080'),
  OPERATIONS_HOST: z.string().min(1).default('127.0.0.1'), // metrics and health detail: loopback unless said otherwise
  OPERATIONS_PORT: port.prefault('9090'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  DATABASE_POOL_SIZE: whole(2, 200).prefault('10'),
  REDIS_URL: z.url({ protocol: /^rediss?$/ }).optional(), // makes changes arrive at once instead of within a second
  REDIS_CLUSTER: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true'), // REDIS_URL names a node of a cluster
  REDIS_DEADLINE_MS: whole(5, 5000).prefault('40'), // how long a command may take before a process decides alone
  REDIS_NAMESPACE: z
    .string()
    .regex(/^[\w-]{1,64}$/)
    .default('gatehouse'), // keeps deployments that share a Redis apart
  MASTER_KEYS: MasterKeys,
  JWT_ISSUERS: jsonText.pipe(IssuerTable).prefault('[]'), // the issuer table (docs/operations.md); empty: no token is accepted
  MODELS_FILE: z.string().min(1).optional(), // the model catalogue (docs/models.md); absent: there are no models
  STATE_DIRECTORY: z.string().min(1).optional(), // survives restarts: last good copies of what others serve us
  EGRESS_PRIVATE_TARGETS: list.pipe(z.array(PrivateTarget)).prefault(''), // host:port the service itself may reach although private
  TRUSTED_PROXIES: list
    .pipe(z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])))
    .prefault(''), // none is trusted by default
  DOCS_URL: z.url({ protocol: /^https?$/ }).optional(), // base of doc_url in error bodies
  LOG_LEVEL: z.enum(['info', 'warn', 'error', 'silent']).default('info'),
  POLICIES_MAX: whole(1, 1_000_000).prefault('500'), // how many policies an organization may have
  ADMIN_REQUESTS_PER_MINUTE: whole(1, 1_000_000).prefault('120'), // of one administrator key
  ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION: whole(1, 1_000_000).prefault('600'), // of all keys of an organization
  ADMIN_CONCURRENT_REQUESTS: whole(1, 256).prefault('20'), // administration calls of an organization at once
  CREDIT_HOLD_GRACE_SECONDS: whole(0, 3600).prefault('60'), // how long a hold outlives the longest its call can take
  FREE_REQUESTS_PER_DAY: whole(0, 1_000_000).prefault('0'), // anonymous requests of all callers together; 0: none
  FREE_REQUEST_CREDITS_MAX: whole(1, 1_000_000_000).prefault('100000'), // what one of them may cost at worst
  STRIPE_WEBHOOK_SECRETS: StripeSecrets.optional(), // whsec_..., several while one replaces another (docs/payments.md); absent: no webhook
  STRIPE_MODE: StripeMode.default('live'), // test: events of Stripe's test mode count, and no others
  STRIPE_PLANS: StripePlans.prefault(''), // price_x=developer,prod_y=growth: which plan a subscription gives
  CONNECTIONS_MAX: whole(1, 100_000).prefault('10000'),
  UNREADY_SECONDS: whole(0, 60).prefault('5'), // after SIGTERM: how long load balancers get to notice
  DRAIN_SECONDS: whole(0, 3600).prefault('120'), // then: how long open requests may take to finish
  KEY_CACHE_OUTAGE_SECONDS: whole(0, 3600).prefault('600'), // how long known keys work while PostgreSQL is away
})
export type Config = Readonly<z.infer<typeof Config>>

type Environment = Readonly<Record<string, string | undefined>>

/** Reads the environment once. A bad value stops the process with a message that names it. */
export function loadConfig(environment: Environment): Config {
  const config = load(Config, environment)
  const { ROLES, MODELS_FILE, STATE_DIRECTORY } = config
  if (ROLES.includes('api') && MODELS_FILE !== undefined && STATE_DIRECTORY === undefined) {
    throw new Error(
      'Bad configuration:\n  STATE_DIRECTORY: is required with MODELS_FILE, because charges wait there while the database is away',
    )
  }
  return config
}

/** All that the operator's commands need. */
export const loadOperatorConfig = (environment: Environment) =>
  load(Config.pick({ DATABASE_URL: true, MASTER_KEYS: true }), environment)

/** All that applying migrations needs. */
export const loadMigrationConfig = (environment: Environment) =>
  load(Config.pick({ DATABASE_URL: true }), environment)

function load<Schema extends z.ZodObject>(schema: Schema, environment: Environment) {
  const values = given(Object.keys(schema.shape), environment)
  const result = schema.safeParse(values)
  if (!result.success) throw new Error(`Bad configuration:\n${explain(result.error, values)}`)
  return Object.freeze(result.data)
}

/** Empty, these are a mistake: somebody meant to set a secret. */
const neverEmpty = new Set(['STRIPE_WEBHOOK_SECRETS'])

/** `NAME_FILE` stands for the content of a file, as secret stores mount them; empty counts as unset. */
function given(names: readonly string[], environment: Environment): Record<string, string> {
  const values = names.map((name) => {
    const file = environment[`${name}_FILE`]
    const value = environment[name] || (file ? readFileOf(name, file) : '')
    const isGiven = environment[name] !== undefined || file !== undefined
    return { name, value, isKept: value !== '' || (neverEmpty.has(name) && isGiven) }
  })
  return Object.fromEntries(
    values.filter(({ isKept }) => isKept).map(({ name, value }) => [name, value]),
  )
}

function readFileOf(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    // Without the path: somebody may have put the secret itself where its file belongs.
    throw new Error(`Bad configuration:\n  ${name}_FILE: cannot be read`)
  }
}

/** Names the variable and the rule, never the value: it may be a secret. */
function explain(error: z.ZodError, values: Record<string, string>): string {
  return error.issues
    .map(({ path, message }) => {
      const isMissing = path.length === 1 && !Object.hasOwn(values, String(path[0]))
      return `  ${path.join('.')}: ${isMissing ? 'is required' : message}`
    })
    .join('\n')
}
