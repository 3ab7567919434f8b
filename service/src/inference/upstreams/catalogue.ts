import { z } from 'zod'

import { readPrice } from '#credits/price.ts'
import { protocolNames } from '#inference/turn.ts'

// The model catalogue: which models there are and who serves them (G1.6). A file of the operator's, in
// JSON; docs/models.md describes it.

const Name = z
  .string()
  .regex(/^[\w.:/@-]{1,200}$/, { error: 'must be 1 to 200 letters, digits or ._:/@-' })
const Milliseconds = z.int().min(1).max(3_600_000)
const Usd = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6})?$/, { error: 'must be US dollars per million tokens, like "0.15"' })

/** Never the secret itself: where it stands. */
const KeyReference = z.union([
  z.strictObject({ env: z.string().regex(/^[A-Z][A-Z0-9_]{0,99}$/) }),
  z.strictObject({ file: z.string().min(1).max(1000) }),
])
export type KeyReference = z.infer<typeof KeyReference>

const Upstream = z.strictObject({
  /** How it wants to be told who we are. */
  kind: z.enum(['openai', 'anthropic']),
  base_url: z.url({ protocol: /^https?$/ }),
  key: KeyReference.optional(),
  /** The formats it speaks, the preferred one first. */
  protocols: z.array(z.enum(protocolNames)).min(1).max(3).optional(),
  /** How it calls the maximum of output in Chat Completions. */
  output_limit_member: z
    .enum(['max_completion_tokens', 'max_tokens'])
    .default('max_completion_tokens'),
  /** What it offers for counting tokens. */
  counter: z.enum(['anthropic', 'vllm', 'llama_cpp']).optional(),
  connections: z.int().min(1).max(10_000).default(1000),
  connect_timeout_ms: Milliseconds.default(5000),
  first_byte_timeout_ms: Milliseconds.default(60_000),
  idle_timeout_ms: Milliseconds.default(60_000),
  total_timeout_ms: Milliseconds.default(600_000),
})

const can = z.boolean().default(true)

const Model = z.strictObject({
  id: Name,
  aliases: z.array(Name).max(50).default([]),
  display_name: z.string().min(1).max(200).optional(),
  owned_by: z.string().min(1).max(200).default('gatehouse'),
  created_at: z.iso.datetime().default('2026-01-01T00:00:00Z'),
  context_tokens: z.int().min(1).max(100_000_000),
  max_output_tokens: z.int().min(1).max(10_000_000),
  /** What a call may write that does not say (G4.43). */
  default_output_tokens: z.int().min(1).max(10_000_000).optional(),
  encoding: z.enum(['o200k', 'cl100k']).default('o200k'),
  /** Is `encoding` the model's own, so that a local count is exact? */
  is_encoding_exact: z.boolean().default(false),
  /** Where the learning of its factor starts: its tokens per token of `encoding`. */
  token_factor: z.number().min(0.7).max(1.6).default(1),
  prices: z.strictObject({
    input: Usd,
    output: Usd,
    cached_input: Usd.optional(),
    cache_write: Usd.optional(),
  }),
  capabilities: z
    .strictObject({ tools: can, images: can, documents: can, reasoning: can, json_schema: can })
    .prefault({}),
  /** In the order in which they are tried. */
  upstreams: z
    .array(z.strictObject({ upstream: Name, model: z.string().min(1).max(200).optional() }))
    .min(1)
    .max(20),
})

const CatalogueFile = z.strictObject({
  upstreams: z.record(Name, Upstream),
  models: z.array(Model).max(10_000),
})

export type Upstream = Omit<z.infer<typeof Upstream>, 'key' | 'protocols'> & {
  name: string
  protocols: readonly (typeof protocolNames)[number][]
  secret: string | null
}
export type CatalogueModel = ReturnType<typeof completeModel>
export type Catalogue = {
  models: readonly CatalogueModel[]
  upstreams: readonly Upstream[]
  /** By id or alias. */
  find(name: string): CatalogueModel | undefined
}

export const emptyCatalogue: Catalogue = { models: [], upstreams: [], find: () => undefined }

/** Where secrets stand, for whoever must notice that one has changed. */
export function keyReferencesOf(text: string): KeyReference[] {
  return Object.values(parse(text).upstreams).flatMap(({ key }) => (key ? [key] : []))
}

/** Reads the file's text. Whatever is wrong with it is said in one error, line by line. */
export function readCatalogue(
  text: string,
  readSecret: (reference: KeyReference) => string,
): Catalogue {
  const file = parse(text)
  const upstreams = new Map<string, Upstream>()
  for (const [name, { key, protocols, ...upstream }] of Object.entries(file.upstreams)) {
    upstreams.set(name, {
      ...upstream,
      name,
      protocols: protocols ?? defaultProtocols[upstream.kind],
      secret: key ? readSecret(key) : null,
    })
  }
  const models = file.models.map((model) => completeModel(model, upstreams))
  const byName = new Map<string, CatalogueModel>()
  for (const model of models) {
    for (const name of [model.id, ...model.aliases]) {
      if (byName.has(name)) throw new Error(`  models: '${name}' names two models`)
      byName.set(name, model)
    }
  }
  return { models, upstreams: [...upstreams.values()], find: (name) => byName.get(name) }
}

const defaultProtocols = {
  openai: ['responses', 'chat_completions'],
  anthropic: ['messages'],
} as const

function parse(text: string): z.infer<typeof CatalogueFile> {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new Error('  it is not JSON')
  }
  const result = CatalogueFile.safeParse(json)
  if (result.success) return result.data
  const lines = result.error.issues.slice(0, 20).map((issue) => {
    const keys = issue.code === 'unrecognized_keys' ? ` (${issue.keys.join(', ')})` : ''
    return `  ${issue.path.join('.') || 'the file'}: ${issue.message}${keys}`
  })
  throw new Error(lines.join('\n'))
}

function completeModel(model: z.infer<typeof Model>, upstreams: ReadonlyMap<string, Upstream>) {
  const { prices } = model
  const cachedInput = prices.cached_input ?? prices.input
  const cacheWrite = prices.cache_write ?? prices.input
  const defaultOutputTokens = model.default_output_tokens ?? 4096
  return {
    ...model,
    display_name: model.display_name ?? model.id,
    default_output_tokens: Math.min(defaultOutputTokens, model.max_output_tokens),
    prices: { ...prices, cached_input: cachedInput, cache_write: cacheWrite },
    price: {
      input: readPrice(prices.input),
      output: readPrice(prices.output),
      cachedInput: readPrice(cachedInput),
      cacheWrite: readPrice(cacheWrite),
    },
    upstreams: model.upstreams.map((each) => {
      const upstream = upstreams.get(each.upstream)
      if (!upstream) {
        throw new Error(
          `  models: '${model.id}' names the upstream '${each.upstream}', which is not there`,
        )
      }
      return { upstream, model: each.model ?? model.id }
    }),
  }
}
