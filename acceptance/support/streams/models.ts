// Catalogues for tests that choose which upstreams serve a model.

export type UpstreamOptions = {
  url: string
  format?: 'messages' | 'chat' | 'responses'
  connections?: number
  connect_timeout_ms?: number
  first_byte_timeout_ms?: number
  idle_timeout_ms?: number
  total_timeout_ms?: number
}

const upstreamKinds = {
  messages: { kind: 'anthropic' },
  chat: { kind: 'openai', protocols: ['chat_completions'] },
  responses: { kind: 'openai', protocols: ['responses'] },
} as const

/** A catalogue from the upstreams of each model, in their order; an upstream is named after its model. */
export function catalogueOf(models: Record<string, readonly UpstreamOptions[]>) {
  const named = Object.entries(models).map(([id, list]) => ({
    id,
    upstreams: list.map((options, index) => ({ name: `${id}-${index + 1}`, options })),
  }))
  const upstreams = named.flatMap(({ upstreams: each }) =>
    each.map(({ name, options: { url, format = 'messages', ...settings } }) => {
      const upstream = { ...upstreamKinds[format], base_url: `${url}/v1`, ...settings }
      return [name, { ...upstream, key: { env: 'UPSTREAM_KEY' } }] as const
    }),
  )
  return {
    upstreams: Object.fromEntries(upstreams),
    models: named.map(({ id, upstreams: each }) => ({
      id,
      context_tokens: 1_000_000,
      max_output_tokens: 100_000,
      prices: { input: '3', output: '15' },
      upstreams: each.map(({ name }) => ({ upstream: name })),
    })),
  }
}

/** The same upstreams, each of which gets unknown members of requests, as the vendors' own hosts do by default. */
export const passUnknown = (upstreams: Readonly<Record<string, object>>) =>
  Object.fromEntries(
    Object.entries(upstreams).map(([name, upstream]) => [
      name,
      { ...upstream, unknown_fields: 'pass' },
    ]),
  )
