import type { Json } from '#formats/answer.ts'
import { cancellationOf } from '#platform/calls/cancellation.ts'
import type { OriginPools } from '#platform/origin-pools.ts'

import type { Upstream } from './catalogue.ts'
import { credentialHeaders } from './origins.ts'

/** Posts JSON to an upstream. Rejects when it cannot be reached. `headers` are those of the caller. */
export type PostToUpstream = (
  path: string,
  json: Json,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>>,
) => Promise<{ status: number; json: unknown }>

const answerMaxBytes = 16 * 1024 * 1024

/** Requests to an upstream other than model calls, such as token counts. Paths start at the root of its server. */
export function createUpstreamPosts(pools: OriginPools) {
  return (upstream: Upstream): PostToUpstream =>
    async (path, json, signal, headers) => {
      const { origin, path: basePath } = upstream.place
      const request = {
        method: 'POST',
        path: basePath.replace(/\/v1$/, '') + path,
        body: JSON.stringify(json),
        cancellation: cancellationOf(signal),
        timeoutMs: upstream.totalTimeoutMs,
        createTimeout,
        headers: {
          'content-type': 'application/json',
          'accept-encoding': 'identity',
          'user-agent': 'gatehouse',
          ...upstream.credentialFormat.headers,
          ...headers,
          ...credentialHeaders(upstream),
        },
      } as const
      const { status, body, isComplete } = await pools.collect(origin, request, answerMaxBytes)
      if (!isComplete) throw new Error('The answer of the upstream is too large.')
      return { status, json: JSON.parse(body.toString()) as unknown }
    }
}

const createTimeout = () => new Error('The upstream did not answer in time.')
