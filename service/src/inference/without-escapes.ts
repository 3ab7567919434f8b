import type { Json } from './answer.ts'

/**
 * Members by which some servers let a caller write more than we reserved for it, or reach another model than
 * the one that was permitted and is paid for.
 */
const escapes: ReadonlySet<string> = new Set([
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

/** A request as it may be forwarded: without the members that could undo what we say in it ourselves. */
export const withoutEscapes = (request: Json): Json =>
  Object.fromEntries(Object.entries(request).filter(([name]) => !escapes.has(name)))
