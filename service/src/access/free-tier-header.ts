import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'

/**
 * Does somebody without a credential ask for the one anonymous request? With a credential the header means
 * nothing, whatever it says (G4.40); a header that was sent twice arrives as a list and is refused.
 */
export function asksForFreeRequest(
  { takesFreeRequests = false }: Pick<Endpoint, 'takesFreeRequests'>,
  { headers }: Pick<FastifyRequest, 'headers'>,
): boolean {
  const { authorization, 'x-api-key': apiKey, 'x-free-tier': asked } = headers
  if (!takesFreeRequests || authorization !== undefined || apiKey !== undefined) return false
  if (asked === undefined) return false
  if (typeof asked === 'string' && asked.toLowerCase() === 'true') return true
  throw new ApiError('invalid_request', 'The header X-Free-Tier can only be true.', {
    param: 'header.x-free-tier',
  })
}
