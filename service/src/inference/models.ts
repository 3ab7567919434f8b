import { listModels, type Model, retrieveModel } from '@gatehouse/contract/model'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { ApiError } from '#platform/api-error.ts'

import { type Catalogue, type CatalogueModel, onlyAllowed } from './upstreams/catalogue.ts'

/** The whole catalogue as one page. */
export function presentCatalogue({ models }: Catalogue) {
  const data = models.map(toModel)
  return {
    object: 'list' as const,
    data,
    has_more: false as const,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

/** `GET /v1/models`: what the caller may use of the catalogue, in a form that the clients of both vendors read. */
export function serveModels(app: FastifyInstance, { catalogue }: { catalogue: () => Catalogue }) {
  bind(app, listModels, (_, { principal }) =>
    presentCatalogue(onlyAllowed(catalogue(), principal.allowedModels)),
  )
  bind(app, retrieveModel, ({ params }, { principal }) => {
    const model = onlyAllowed(catalogue(), principal.allowedModels).find(params.model_id)
    if (model) return toModel(model)
    throw new ApiError('unknown_model', 'There is no such model; GET /v1/models lists them.', {
      param: 'path.model_id',
    })
  })
}

function toModel(model: CatalogueModel): Model {
  const { id, aliases, createdAt, usdPerMillion } = model
  const { jsonSchema, ...capabilities } = model.capabilities
  return {
    id,
    object: 'model',
    type: 'model',
    aliases: [...aliases],
    owned_by: model.ownedBy,
    display_name: model.displayName,
    context_tokens: model.contextTokens,
    max_output_tokens: model.maxOutputTokens,
    pricing: {
      input: usdPerMillion.input,
      output: usdPerMillion.output,
      cached_input: usdPerMillion.cachedInput,
      cache_write: usdPerMillion.cacheWrite,
    },
    capabilities: { ...capabilities, json_schema: jsonSchema },
    created: Math.floor(Date.parse(createdAt) / 1000),
    created_at: createdAt,
  }
}
