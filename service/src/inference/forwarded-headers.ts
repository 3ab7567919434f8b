import type { FastifyRequest } from 'fastify'

const forwarded = ['anthropic-version', 'anthropic-beta', 'openai-beta'] as const

/** Headers of a caller's that an upstream of the same format understands. */
export function forwardedHeaders({ headers }: FastifyRequest): Record<string, string> {
  const given = forwarded.flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  return Object.fromEntries(given)
}
