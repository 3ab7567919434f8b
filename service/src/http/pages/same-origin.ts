import type { IncomingHttpHeaders } from 'node:http'

import { ApiError } from '#platform/api-error.ts'

/**
 * Whether a browser says that a page of this gateway has sent the request. Browsers set both headers themselves; those that
 * send no Sec-Fetch-Site name the origin. A sibling subdomain is `same-site`, which is not enough.
 */
export function isFromOwnPage(headers: IncomingHttpHeaders, publicUrl: string): boolean {
  const site = headers['sec-fetch-site']
  return site === undefined ? headers.origin === publicUrl : site === 'same-origin'
}

export const refuseCrossSite = () =>
  new ApiError(
    'cross_site_request',
    'The request did not come from a page of this gateway, or without its x-gatehouse-csrf; read the token again and repeat it.',
  )
