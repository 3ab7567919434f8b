import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'

/**
 * Whether a request without a credential asks for the free request. With a credential the header is
 * ignored, whatever its value; a header that was sent twice arrives as a list and is refused.
 */
export function asksForFreeRequest(
  { takesFreeRequests = false }: Pick<Endpoint, 'takesFreeRequests'>,
  { headers }: Pick<FastifyRequest, 'headers'>,
): boolean {
  const { authorization, 'x-api-key': apiKey, 'x-free-tier': freeTier } = headers
  if (!takesFreeRequests || authorization !== undefined || apiKey !== undefined) return false
  if (freeTier === undefined) return false
  if (typeof freeTier === 'string' && freeTier.toLowerCase() === 'true') return true
  throw new ApiError(
    'invalid_request',
    "The header X-Free-Tier must be 'true'; leave it out otherwise.",
    { param: 'header.x-free-tier' },
  )
}
