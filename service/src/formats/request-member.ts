import { ApiError } from '#platform/api-error.ts'

import type { Json } from './answer.ts'
import { asObject, asText } from './json-values.ts'

/** A request that fits its schema and makes no sense. `rule` ends a sentence that starts with the name. */
export const invalidMember = (param: string, rule: string) =>
  new ApiError('invalid_request', `'${param}' ${rule}.`, { param })

/** The text in a member of the object at `param`. */
export function needText(from: Json, member: string, param: string): string {
  const text = asText(from[member])
  if (text === undefined) throw invalidMember(`${param}.${member}`, 'must be a string')
  return text
}

/** The object in a member of the object at `param`. */
export function needObject(from: Json, member: string, param: string): Json {
  const object = asObject(from[member])
  if (!object) throw invalidMember(`${param}.${member}`, 'must be an object')
  return object
}
