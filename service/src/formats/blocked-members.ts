import type { Json } from './answer.ts'

/**
 * Members of some servers by which a caller could get more output than was reserved, or another model than the
 * one that was permitted and is charged for.
 */
const blockedMembers: ReadonlySet<string> = new Set([
  'n_predict',
  'max_new_tokens',
  'min_tokens',
  'min_new_tokens',
  'best_of',
  'extra_body',
  'models',
  'route',
  'fallbacks',
])

/** A caller's request as it may be forwarded. */
export const withoutBlockedMembers = (request: Json): Json =>
  Object.fromEntries(Object.entries(request).filter(([name]) => !blockedMembers.has(name)))
