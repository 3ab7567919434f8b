import { z } from 'zod'

import { features } from '#formats/fields/field-table.ts'
import { explainFileIssue } from '#http/validate.ts'
import { fileError, memberName } from '#platform/operator-file/file-error.ts'
import { KeyReference } from '#platform/operator-file/key-reference.ts'
import { findJsonFault } from '#platform/operator-file/scan-json.ts'

// The model catalogue as the operator writes it (docs/models.md). Nothing behind catalogue.ts sees these names.

const nameRule = 'must be 1 to 200 letters, digits or ._:/@-'
const Name = z.string().regex(/^[\w.:/@-]{1,200}$/, { error: nameRule })
const Milliseconds = z.int().min(1).max(3_600_000)
const priceRule = 'must be US dollars per million tokens, as text like "0.15"'
const Usd = z.string({ error: priceRule }).regex(/^\d{1,6}(\.\d{1,6})?$/, { error: priceRule })

const callPriceRule = 'must be US dollars per call, as text like "0.01"'
const UsdPerCall = z
  .string({ error: callPriceRule })
  .regex(/^\d{1,3}(\.\d{1,6})?$/, { error: callPriceRule })

const FormatNames = z.array(Name).min(1, { error: 'must name at least one format' }).max(20)

const UpstreamEntry = z.strictObject({
  /** The vendor whose API the upstream imitates. It decides the credential header, and the formats unless they are listed. */
  kind: z.enum(['openai', 'anthropic']).optional(),
  base_url: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }),
  key: KeyReference.optional(),
  /** The preferred one first; `protocols` is the older name. */
  formats: FormatNames.optional(),
  protocols: FormatNames.optional(),
  /** The name of the output limit in its Chat Completions. */
  output_limit_member: z
    .enum(['max_completion_tokens', 'max_tokens'])
    .default('max_completion_tokens'),
  /** The API by which it counts tokens. */
  counter: z.enum(['anthropic', 'vllm', 'llama_cpp']).optional(),
  /** What happens to members of a request that no table knows; by default it depends on the host. */
  unknown_fields: z.enum(['pass', 'drop']).optional(),
  /** Which URLs of images and other media the upstream gets. media-urls.ts has the default. */
  media_urls: z.enum(['refuse', 'public', 'any']).optional(),
  connections: z.int().min(1).max(10_000).default(1000),
  connect_timeout_ms: Milliseconds.default(5000),
  first_byte_timeout_ms: Milliseconds.default(60_000),
  idle_timeout_ms: Milliseconds.default(60_000),
  total_timeout_ms: Milliseconds.default(600_000),
})
export type UpstreamEntry = z.infer<typeof UpstreamEntry>

const capability = z.boolean().default(true)

const ModelEntry = z.strictObject({
  id: Name,
  aliases: z.array(Name).max(50).default([]),
  display_name: z.string().min(1).max(200).optional(),
  owned_by: z.string().min(1).max(200).default('gatehouse'),
  created_at: z.iso.datetime().default('2026-01-01T00:00:00Z'),
  context_tokens: z.int().min(1).max(100_000_000),
  max_output_tokens: z.int().min(1).max(10_000_000),
  /** The output limit of a call that names none; 4096 if absent. */
  default_output_tokens: z.int().min(1).max(10_000_000).optional(),
  encoding: z.enum(['o200k', 'cl100k']).default('o200k'),
  /** Is `encoding` the model's own, so that a local count is exact? */
  is_encoding_exact: z.boolean().default(false),
  /** The initial factor of the model's tokens per token of `encoding`, which is then learned. */
  token_factor: z.number().min(0.7).max(1.6).default(1),
  prices: z.strictObject({
    input: Usd,
    output: Usd,
    cached_input: Usd.optional(),
    cache_write: Usd.optional(),
    /** For cache markers of an hour; without it they last five minutes. */
    cache_write_1h: Usd.optional(),
    /** US dollars for each call of a tool that the provider runs. */
    per_call: z.strictObject({ web_search: UsdPerCall }).optional(),
  }),
  /** When the prices were last checked; a note for the people who maintain the file. */
  prices_as_of: z.iso.date({ error: 'must be a date like "2026-01-31"' }).optional(),
  capabilities: z
    .strictObject({
      tools: capability,
      images: capability,
      documents: capability,
      reasoning: capability,
      json_schema: capability,
    })
    .prefault({}),
  /** Features that callers may use although they cost more than tokens, or reach further than the model. */
  allows: z.array(z.enum(features)).max(features.length).default([]),
  /** The most tokens of one image; an image of unknown size counts as this many. */
  image_tokens_max: z.int().min(1).max(1_000_000).default(3000),
  /** Whether upstreams may be asked for a plain answer if the caller wants one. Otherwise they are always asked to stream. */
  plain: z.boolean().default(true),
  /** In the order in which they are tried. */
  upstreams: z
    .array(z.strictObject({ upstream: Name, model: z.string().min(1).max(200).optional() }))
    .min(1, { error: 'must name at least one upstream' })
    .max(20),
})
export type ModelEntry = z.infer<typeof ModelEntry>

const CatalogueFile = z.strictObject({
  upstreams: z.record(Name, UpstreamEntry),
  models: z.array(ModelEntry).max(10_000),
})
export type CatalogueFile = z.infer<typeof CatalogueFile>

export function parseCatalogueFile(text: string): CatalogueFile {
  const json = parseJson(text)
  const result = CatalogueFile.safeParse(json)
  if (result.success) return result.data
  throw fileError(
    result.error.issues.map((issue) => {
      const { path, rule } = explainFileIssue(issue, json)
      return `${toPlace(path, json)}: ${rule}`
    }),
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const { line, column, expected } = findJsonFault(text)
    throw fileError([`line ${line}, column ${column}: it is not JSON; expected ${expected}`])
  }
}

/** `models.gpt-5.prices.input`: models by their id, where they have one. */
function toPlace(path: readonly PropertyKey[], json: unknown): string {
  const [list, index, ...rest] = path
  const id = list === 'models' && typeof index === 'number' ? idOfModel(json, index) : undefined
  return memberName(id === undefined ? path : ['models', id, ...rest])
}

function idOfModel(json: unknown, index: number): string | undefined {
  const { models } = Object(json) as { models?: unknown[] }
  const { id } = Object(models?.[index]) as { id?: unknown }
  return Name.safeParse(id).data
}
