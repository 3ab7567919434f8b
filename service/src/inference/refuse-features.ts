import type { Asked } from '#formats/fields/find-features.ts'
import type { Part, Turn } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { type Catalogue, type CatalogueModel, modelNotFound } from './upstreams/catalogue.ts'

/** 400 for a feature that the catalogue does not allow for the model. Anonymous callers may use none of them. */
export function refuseFeatures(
  asked: readonly Asked[],
  { id, allows }: CatalogueModel,
  isAnonymous: boolean,
) {
  const refused = asked.find(({ feature }) => isAnonymous || !allows.has(feature))
  if (!refused) return
  const { feature, place } = refused
  const reason = isAnonymous
    ? 'a call without a key may not use it'
    : `the model '${id}' does not allow it. The operator can add "${feature}" to 'allows' of this model in the model catalogue`
  throw unsupported(`'${place}' asks for ${feature}: ${reason}.`, place)
}

/**
 * 404 for a tool whose model the provider would ask too, unless that is one that the caller may use. Such a tool names it as the
 * provider does, or as the catalogue does.
 */
export function refuseFurtherModels(asked: readonly Asked[], allowed: Catalogue) {
  for (const { model, place } of asked) {
    if (model !== undefined && !isNamed(allowed, model))
      throw modelNotFound(model, `${place}.model`)
  }
}

const isNamed = ({ find, models }: Catalogue, name: string): boolean =>
  find(name) !== undefined ||
  models.some(({ upstreams }) => upstreams.some(({ model }) => model === name))

/** 400 for input that the request only refers to: an anonymous call must not cost more than it shows. */
export function refuseUnsent({ messages }: Turn) {
  const isUnsent = (part: Part): boolean => {
    if (part.type === 'tool_result') return part.parts.some(isUnsent)
    if (part.type !== 'image' && part.type !== 'document') return false
    return part.source.type === 'url' || part.source.type === 'file'
  }
  if (!messages.some(({ parts }) => parts.some(isUnsent))) return
  throw unsupported('A call without a key may not refer to images or files by URL or id.', 'body')
}

const unsupported = (message: string, param: string) =>
  new ApiError('unsupported_parameter', message, { param })
