import type { Price } from '#credits/price.ts'
import type { Feature } from '#formats/fields/field-table.ts'
import type { UpstreamFormat } from '#formats/format.ts'
import { ApiError } from '#platform/api-error.ts'
import type { KeyReference } from '#platform/operator-file/key-reference.ts'
import type { Origin } from '#platform/origin-pools.ts'

import type { ModelEntry, UpstreamEntry } from './catalogue-file.ts'
import type { MediaUrls } from './media-urls.ts'

/** Where the requests to an upstream go. */
export type OriginPlace = {
  origin: Origin
  /** The path of the base URL, without a slash at its end. */
  path: string
}

/** A server that answers model calls. */
export type Upstream = {
  name: string
  baseUrl: string
  /** The base URL, parsed. */
  place: OriginPlace
  /** The preferred one first. */
  formats: readonly [UpstreamFormat, ...UpstreamFormat[]]
  /** The format whose credential header every request carries, whatever the format of the request. */
  credentialFormat: UpstreamFormat
  key: KeyReference | null
  secret: string | null
  outputLimitMember: UpstreamEntry['output_limit_member']
  counter: NonNullable<UpstreamEntry['counter']> | null
  passesUnknownFields: boolean
  mediaUrls: MediaUrls
  connections: number
  connectTimeoutMs: number
  firstByteTimeoutMs: number
  idleTimeoutMs: number
  totalTimeoutMs: number
}

export type CatalogueModel = {
  id: string
  aliases: readonly string[]
  displayName: string
  ownedBy: string
  createdAt: string
  contextTokens: number
  maxOutputTokens: number
  defaultOutputTokens: number
  encoding: ModelEntry['encoding']
  isEncodingExact: boolean
  tokenFactor: number
  price: Price
  /** The same in US dollars per million tokens, as the file has them. */
  usdPerMillion: { input: string; output: string; cachedInput: string; cacheWrite: string }
  /** What callers may use beyond the model itself. */
  allows: ReadonlySet<Feature>
  /** The most tokens of one image. */
  imageTokensMax: number
  capabilities: {
    tools: boolean
    images: boolean
    documents: boolean
    reasoning: boolean
    jsonSchema: boolean
  }
  /** Whether its upstreams may be asked for plain answers. */
  canAnswerPlainly: boolean
  /** In the order in which they are tried; `model` is the upstream's own name for it. */
  upstreams: readonly { upstream: Upstream; model: string }[]
}

export type Catalogue = {
  models: readonly CatalogueModel[]
  upstreams: readonly Upstream[]
  /** By id or alias. */
  find(name: string): CatalogueModel | undefined
}

/** A catalogue as a caller sees it who may use these models only; null: all of them. Other models do not exist for it. */
export function onlyAllowed(catalogue: Catalogue, ids: readonly string[] | null): Catalogue {
  if (ids === null) return catalogue
  return {
    ...catalogue,
    get models() {
      const allowed = new Set(ids)
      return catalogue.models.filter(({ id }) => allowed.has(id))
    },
    find(name) {
      const model = catalogue.find(name)
      return model && ids.includes(model.id) ? model : undefined
    },
  }
}

export const modelNotFound = (name: string, param: string) =>
  new ApiError(
    'model_not_found',
    `There is no model '${name.slice(0, 100)}'; GET /v1/models lists those you can call.`,
    { param },
  )

export const emptyCatalogue: Catalogue = { models: [], upstreams: [], find: () => undefined }
