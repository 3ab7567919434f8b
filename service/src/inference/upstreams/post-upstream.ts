import type { Post } from '#inference/count/upstream-counter.ts'
import type { OriginPools } from '#platform/origin-pools.ts'

import type { Upstream } from './catalogue.ts'
import { credentialsOf } from './open-answer.ts'
import { settingsOf } from './origins.ts'

const answerMaxBytes = 16 * 1024 * 1024

/** Small questions to an upstream beside its models: paths start at the root of its server. */
export function createUpstreamPosts(pools: OriginPools) {
  return (upstream: Upstream): Post =>
    async (path, json, signal, headers) => {
      const { origin, pathname } = new URL(upstream.base_url)
      const root = pathname.replace(/\/+$/, '').replace(/\/v1$/, '')
      const { status, body } = await pools.request(origin, settingsOf(upstream), {
        ...{ method: 'POST', path: root + path, body: JSON.stringify(json), signal },
        headers: { ...headersOf(upstream), ...headers, ...credentialsOf(upstream) },
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

const headersOf = ({ kind }: Upstream): Record<string, string> => ({
  'content-type': 'application/json',
  'accept-encoding': 'identity',
  'user-agent': 'gatehouse',
  ...(kind === 'anthropic' && { 'anthropic-version': '2023-06-01' }),
})
