import { listModels, type Model, retrieveModel } from '@gatehouse/contract/model'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { ApiError } from '#platform/api-error.ts'

import type { Catalogue, CatalogueModel } from './upstreams/catalogue.ts'

/** Which models there are: the catalogue, as both vendors' clients read it. */
export function serveModels(app: FastifyInstance, { catalogue }: { catalogue: () => Catalogue }) {
  bind(app, listModels, () => {
    const data = catalogue().models.map(present)
    const [first] = data
    return {
      object: 'list' as const,
      data,
      has_more: false as const,
      first_id: first?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
    }
  })
  bind(app, retrieveModel, ({ params }) => {
    const model = catalogue().find(params.model_id)
    if (model) return present(model)
    throw new ApiError('unknown_model', 'There is no such model; GET /v1/models lists them.', {
      param: 'path.model_id',
    })
  })
}

function present(model: CatalogueModel): Model {
  const { id, aliases, owned_by, display_name, context_tokens, max_output_tokens } = model
  return {
    ...{ id, object: 'model', type: 'model', aliases, owned_by, display_name },
    ...{
      context_tokens,
      max_output_tokens,
      pricing: model.prices,
      capabilities: model.capabilities,
    },
    created: Math.floor(Date.parse(model.created_at) / 1000),
    created_at: model.created_at,
  }
}
