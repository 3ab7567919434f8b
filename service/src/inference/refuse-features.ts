import type { Asked } from '#formats/fields/find-features.ts'
import type { Part, Turn } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import type { CatalogueModel } from './upstreams/catalogue.ts'

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
