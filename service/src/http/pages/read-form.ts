import type { FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'

const fieldsMax = 20

/** The fields of a form that a browser has posted; of a repeated field the form is refused. */
export function readForm({ bodyBytes }: FastifyRequest): ReadonlyMap<string, string> {
  const fields = [...new URLSearchParams(bodyBytes?.toString() ?? '')]
  const form = new Map(fields)
  if (form.size < fields.length || fields.length > fieldsMax) {
    throw new ApiError('invalid_request', 'The form has a field more than once, or too many.')
  }
  return form
}
