import type { GenerationOptions } from './engine.ts'

export type Body = Record<string, unknown>

/** An invalid request; the message explains it to its sender. */
export class BadRequest extends Error {}

export function parseBody(text: string): Body {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Body
  } catch {
    // The error below is the same for invalid JSON and for JSON that is not an object.
  }
  throw new BadRequest('The body is not a JSON object.')
}

/** The model has no roles: it continues the text of the last user message. */
export function promptFrom(body: Body): string {
  const messages = Array.isArray(body['messages']) ? (body['messages'] as unknown[]) : []
  const last = messages.map(recordOf).findLast(({ role }) => role === 'user')
  if (!last) throw new BadRequest('The request needs a user message.')
  const { content } = last
  if (typeof content === 'string') return content
  const parts = Array.isArray(content) ? (content as unknown[]).map(recordOf) : []
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('')
}

/** The default temperature is 0, so that tests can compare the text. */
export function readGenerationOptions(
  body: Body,
  fit: (text: string) => string,
): GenerationOptions {
  const { stop } = body
  const stops = (Array.isArray(stop) ? (stop as unknown[]) : [stop]).filter(
    (one): one is string => typeof one === 'string' && one !== '',
  )
  const maxTokens = numberIn(body, 'max_completion_tokens') ?? numberIn(body, 'max_tokens')
  if (maxTokens !== undefined && maxTokens < 1) throw new BadRequest('max_tokens is below 1.')
  const [topP, topK, seed] = ['top_p', 'top_k', 'seed'].map((name) => numberIn(body, name))
  return {
    prompt: fit(promptFrom(body)),
    maxTokens: maxTokens ?? Infinity,
    stops,
    sampling: {
      temperature: numberIn(body, 'temperature') ?? 0,
      ...(topP !== undefined && { topP }),
      ...(topK !== undefined && { topK }),
      ...(seed !== undefined && { seed }),
    },
  }
}

export function recordOf(value: unknown): Body {
  return typeof value === 'object' && value !== null ? (value as Body) : {}
}

function numberIn(body: Body, name: string): number | undefined {
  const value = body[name]
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
