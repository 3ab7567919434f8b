// Which part of a call a file belongs to. The first pattern that matches the file decides; code of Node counts for its
// caller, and for itself only where Node calls it.

export const parts = {
  upstream: { what: 'upstream request', plain: 60, stream: 60 },
  answer: { what: 'reading the answer, fold, write', plain: 10, stream: 60 },
  credits: { what: 'hold and settle', plain: 40, stream: 40 },
  http: { what: 'HTTP in and out', plain: 40, stream: 40 },
  limiter: { what: 'limiter', plain: 35, stream: 35 },
  records: { what: 'event, log line, metrics', plain: 25, stream: 25 },
  body: { what: 'body, guards, schema, turn', plain: 25, stream: 25 },
  glue: { what: 'access, glue, signals, estimate', plain: 35, stream: 35 },
  policies: { what: 'policies', plain: 30, stream: 30 },
  other: { what: 'not attributable, garbage, other threads', plain: 60, stream: 60 },
} as const satisfies Record<string, { what: string; plain: number; stream: number }>

export type PartName = keyof typeof parts

const patterns: readonly (readonly [RegExp, PartName])[] = [
  [/^undici\//, 'upstream'],
  [/^(pg|pg-[\w-]+|kysely|postgres-[\w-]+)\//, 'credits'],
  [/^(redis|@redis)\//, 'limiter'],
  [/^(fastify|@fastify\/[\w-]+|find-my-way|avvio)\//, 'http'],
  [/^(pino|prom-client|sonic-boom|thread-stream|quick-format-unescaped)\//, 'records'],
  [/^(zod|contract)\//, 'body'],
  [/^service\/src\/inference\/(upstreams\/read-pieces|write-answer|metering\/)/, 'answer'],
  [/^service\/src\/(inference\/upstreams\/|platform\/origin-pools)/, 'upstream'],
  [/^service\/src\/formats\/(fields\/|turn|data-url|forwarded-headers|request-member)/, 'body'],
  [/^service\/src\/formats\/.*(-request|-turn|-parts|-input|-items|-messages|-content)/, 'body'],
  [/^service\/src\/formats\//, 'answer'],
  [
    /^service\/src\/(credits\/|inference\/bill|platform\/(batched|database|transaction))/,
    'credits',
  ],
  [/^service\/src\/(limits\/|platform\/redis)/, 'limiter'],
  [/^service\/src\/(audit\/|inference\/(call-event|record-refusal|count-attempts))/, 'records'],
  [/^service\/src\/platform\/(log|metrics|bounded-output)/, 'records'],
  [/^service\/src\/http\/(read-|validate|body-budget|pace-watch)/, 'body'],
  [/^service\/src\/inference\/(read-model-request|model-request|refuse-|check-)/, 'body'],
  [/^service\/src\/http\//, 'http'],
  [/^service\/src\/(policies|policies-in-force|gateway-config)\//, 'policies'],
  [/^service\//, 'glue'],
]

/** Where Node itself is the caller. */
const nodePatterns: readonly (readonly [RegExp, PartName])[] = [
  [/^node:_http_(server|incoming|outgoing|common)/, 'http'],
  [/^node:internal\/(http|crypto)/, 'glue'],
]

/** The part of a function, given that of its caller. */
export function partOf(file: string, caller: PartName): PartName {
  if (file === '' || file.startsWith('node:')) {
    if (caller !== 'other') return caller
    return nodePatterns.find(([pattern]) => pattern.test(file))?.[1] ?? 'other'
  }
  return patterns.find(([pattern]) => pattern.test(file))?.[1] ?? caller
}
