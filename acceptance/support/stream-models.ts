// Catalogues for tests that care about who serves a model.

export type UpstreamWish = {
  url: string
  format?: 'messages' | 'chat' | 'responses'
  connections?: number
  connect_timeout_ms?: number
  first_byte_timeout_ms?: number
  idle_timeout_ms?: number
  total_timeout_ms?: number
}

const speech = {
  messages: { kind: 'anthropic' },
  chat: { kind: 'openai', protocols: ['chat_completions'] },
  responses: { kind: 'openai', protocols: ['responses'] },
} as const

/** A catalogue from the upstreams of each model, in their order; an upstream is named after its model. */
export function catalogueOf(models: Record<string, readonly UpstreamWish[]>) {
  const named = Object.entries(models).map(([id, wishes]) => ({
    id,
    upstreams: wishes.map((wish, place) => ({ name: `${id}-${place + 1}`, wish })),
  }))
  const upstreams = named.flatMap(({ upstreams: each }) =>
    each.map(({ name, wish: { url, format = 'messages', ...settings } }) => {
      const upstream = { ...speech[format], base_url: `${url}/v1`, ...settings }
      return [name, { ...upstream, key: { env: 'UPSTREAM_KEY' } }] as const
    }),
  )
  return {
    upstreams: Object.fromEntries(upstreams),
    models: named.map(({ id, upstreams: each }) => ({
      id,
      ...{
        context_tokens: 1_000_000,
        max_output_tokens: 100_000,
        prices: { input: '3', output: '15' },
      },
      upstreams: each.map(({ name }) => ({ upstream: name })),
    })),
  }
}
