import type { Json } from '#formats/answer.ts'
import type { OriginPools } from '#platform/origin-pools.ts'

import type { Upstream } from './catalogue.ts'
import { credentialHeaders, settingsOf } from './origins.ts'

/** Posts JSON to an upstream. Rejects when it cannot be reached. `headers` are those of the caller. */
export type PostToUpstream = (
  path: string,
  json: Json,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>>,
) => Promise<{ status: number; json: unknown }>

const answerMaxBytes = 16 * 1024 * 1024

/** Requests to an upstream that are no model calls, such as token counts. Paths start at the root of its server. */
export function createUpstreamPosts(pools: OriginPools) {
  return (upstream: Upstream): PostToUpstream =>
    async (path, json, signal, headers) => {
      const { origin, pathname } = new URL(upstream.baseUrl)
      const root = pathname.replace(/\/+$/, '').replace(/\/v1$/, '')
      const { status, body } = await pools.request(origin, settingsOf(upstream), {
        method: 'POST',
        path: root + path,
        body: JSON.stringify(json),
        signal,
        headers: {
          'content-type': 'application/json',
          'accept-encoding': 'identity',
          'user-agent': 'gatehouse',
          ...upstream.credentialFormat.headers,
          ...headers,
          ...credentialHeaders(upstream),
        },
      })
      const chunks: Buffer[] = []
      let bytes = 0
      for await (const chunk of body as AsyncIterable<Buffer>) {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes > answerMaxBytes) throw new Error('The answer of the upstream is too large.')
      }
      return { status, json: JSON.parse(Buffer.concat(chunks).toString()) as unknown }
    }
}
