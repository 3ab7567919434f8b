import { readPrice, readPriceOfCall } from '#credits/price.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import { fileError } from '#platform/operator-file/file-error.ts'
import type { KeyReference } from '#platform/operator-file/key-reference.ts'

import {
  type CatalogueFile,
  type ModelEntry,
  parseCatalogueFile,
  type UpstreamEntry,
} from './catalogue-file.ts'
import type { Catalogue, CatalogueModel, Upstream } from './catalogue.ts'
import { decideMediaUrls, isVendorHost } from './media-urls.ts'
import { originPlaceOf } from './origins.ts'

type Options = {
  formats: UpstreamFormats
  /** Reads the key; throws if there is no usable one. */
  readSecret: (reference: KeyReference) => string
}

/** Reads the text of the file. One error lists everything that is wrong with it. */
export function readCatalogue(text: string, options: Options): Catalogue {
  const file = parseCatalogueFile(text)
  const problems = findUnknownUpstreams(file)
  /** Runs one step of reading. What it throws becomes one problem of the catalogue, and reading goes on. */
  const attempt = <Result>(place: string, step: () => Result): Result | undefined => {
    try {
      return step()
    } catch (error) {
      problems.push(`${place}: ${(error as Error).message}`)
      return undefined
    }
  }
  const upstreams = new Map<string, Upstream>()
  for (const [name, entry] of Object.entries(file.upstreams)) {
    const { key } = entry
    const formats = attempt(`upstreams.${name}`, () => findFormats(entry, options.formats))
    const secret = attempt(`upstreams.${name}.key`, () => (key ? options.readSecret(key) : null))
    if (!formats || secret === undefined) continue
    const upstream = toUpstream(name, entry)
    upstreams.set(name, { ...upstream, ...formats, place: originPlaceOf(upstream), secret })
  }
  const models = file.models.map((entry) => toModel(entry, upstreams))
  const byName = new Map<string, CatalogueModel>()
  for (const model of models) {
    for (const name of [model.id, ...model.aliases]) {
      const other = byName.get(name)
      if (other) problems.push(`models.${model.id}: '${name}' already names models.${other.id}`)
      byName.set(name, model)
    }
  }
  if (problems.length > 0) throw fileError(problems)
  return { models, upstreams: [...upstreams.values()], find: (name) => byName.get(name) }
}

const findUnknownUpstreams = ({ models, upstreams }: CatalogueFile): string[] =>
  models.flatMap(({ id, upstreams: used }) =>
    used.flatMap(({ upstream }, index) =>
      Object.hasOwn(upstreams, upstream)
        ? []
        : [`models.${id}.upstreams[${index}]: there is no upstream '${upstream}'`],
    ),
  )

/** What `kind` stands for: formats unless others are listed, and the format whose credential header is used. */
const kinds = {
  openai: { formats: ['responses', 'chat_completions'], credential: 'chat_completions' },
  anthropic: { formats: ['messages'], credential: 'messages' },
} as const

function findFormats(entry: UpstreamEntry, known: UpstreamFormats) {
  const find = (name: string) => {
    const format = known.get(name)
    if (format) return format
    throw new Error(`there is no format '${name}'; known are ${[...known.keys()].join(', ')}`)
  }
  const { formats, protocols } = entry
  if (formats && protocols) throw new Error("'protocols' is the older name of 'formats'; keep one")
  const kind = entry.kind && kinds[entry.kind]
  const [first, ...others] = (formats ?? protocols ?? kind?.formats ?? []).map(find)
  if (!first) throw new Error("needs a 'kind' or 'formats'")
  const credentialFormat = kind ? find(kind.credential) : first
  return { formats: [first, ...others] as const, credentialFormat }
}

const toUpstream = (name: string, entry: UpstreamEntry) => ({
  name,
  baseUrl: entry.base_url,
  key: entry.key ?? null,
  outputLimitMember: entry.output_limit_member,
  counter: entry.counter ?? null,
  passesUnknownFields: (entry.unknown_fields ?? defaultForUnknown(entry)) === 'pass',
  mediaUrls: decideMediaUrls(entry),
  connections: entry.connections,
  connectTimeoutMs: entry.connect_timeout_ms,
  firstByteTimeoutMs: entry.first_byte_timeout_ms,
  idleTimeoutMs: entry.idle_timeout_ms,
  totalTimeoutMs: entry.total_timeout_ms,
})

const defaultForUnknown = ({ base_url }: UpstreamEntry) =>
  isVendorHost(base_url) ? 'pass' : 'drop'

const defaultOutputTokens = 4096

function toModel(entry: ModelEntry, upstreams: ReadonlyMap<string, Upstream>): CatalogueModel {
  const { id, prices, capabilities, max_output_tokens: maxOutputTokens } = entry
  const usdPerMillion = {
    input: prices.input,
    output: prices.output,
    cachedInput: prices.cached_input ?? prices.input,
    cacheWrite: prices.cache_write ?? prices.input,
  }
  return {
    id,
    aliases: entry.aliases,
    displayName: entry.display_name ?? id,
    ownedBy: entry.owned_by,
    createdAt: entry.created_at,
    contextTokens: entry.context_tokens,
    maxOutputTokens,
    defaultOutputTokens: Math.min(
      entry.default_output_tokens ?? defaultOutputTokens,
      maxOutputTokens,
    ),
    encoding: entry.encoding,
    isEncodingExact: entry.is_encoding_exact,
    tokenFactor: entry.token_factor,
    usdPerMillion,
    price: toPrice(prices, usdPerMillion),
    // A feature with a price is allowed, too.
    allows: new Set([...entry.allows, ...(prices.per_call ? (['web_search'] as const) : [])]),
    imageTokensMax: entry.image_tokens_max,
    capabilities: {
      tools: capabilities.tools,
      images: capabilities.images,
      documents: capabilities.documents,
      reasoning: capabilities.reasoning,
      jsonSchema: capabilities.json_schema,
    },
    canAnswerPlainly: entry.plain,
    upstreams: entry.upstreams.flatMap((target) => {
      const upstream = upstreams.get(target.upstream)
      return upstream ? [{ upstream, model: target.model ?? id }] : []
    }),
  }
}

function toPrice(
  { cache_write_1h: hour, per_call: perCall }: ModelEntry['prices'],
  { input, output, cachedInput, cacheWrite }: CatalogueModel['usdPerMillion'],
): CatalogueModel['price'] {
  return {
    input: readPrice(input),
    output: readPrice(output),
    cachedInput: readPrice(cachedInput),
    cacheWrite: readPrice(cacheWrite),
    ...(hour !== undefined && { cacheWriteHour: readPrice(hour) }),
    ...(perCall && { webSearch: readPriceOfCall(perCall.web_search) }),
  }
}
