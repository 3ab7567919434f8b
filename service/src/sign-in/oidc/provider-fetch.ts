import type { CustomFetch } from 'openid-client'

import { type Egress, EgressFailed } from '#platform/egress.ts'

/** Of one request to a provider. A person waits for up to three of them. */
const deadlineMs = 5000
/** Lists of keys and tokens with many groups are the largest answers. */
const answerLimitBytes = 256 * 1024

const methods = ['GET', 'POST'] as const

/** How the protocol's library reaches providers: through the guarded client, without redirects, limited in time and size. */
export function createProviderFetch(egress: Pick<Egress, 'request'>): CustomFetch {
  return async (url, { method, headers, body }) => {
    const known = methods.find((each) => each === method)
    if (!known) throw new EgressFailed(`Providers are not called with ${method}.`)
    const answer = await egress.request(url, {
      method: known,
      headers,
      ...(body == null ? {} : { body: textOf(body) }),
      deadlineMs,
      answerLimitBytes,
    })
    const hasBody = answer.status !== 204 && answer.status !== 304
    return new Response(hasBody ? new Uint8Array(answer.body) : null, {
      status: answer.status,
      headers: flatten(answer.headers),
    })
  }
}

/** The library sends forms only. */
function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new EgressFailed('Providers are sent forms only.')
}

const flatten = (headers: Record<string, string | string[] | undefined>) =>
  Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
  )
