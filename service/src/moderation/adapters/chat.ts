import type { Segment } from '#moderation/scorer.ts'
import { breakTemplateTokens } from '#moderation/template-tokens.ts'

import type { ScorerCall } from './adapter.ts'

type Message = { role: 'system' | 'user' | 'assistant'; content: string }

/**
 * The segment as a conversation whose last message is the one to score. Chat templates of guard models refuse a conversation
 * that starts with an answer, so a message of the user comes before it.
 */
export function toConversation({ role, text }: Segment): readonly Message[] {
  const content = breakTemplateTokens(text)
  if (role === 'user') return [{ role, content }]
  return [
    { role: 'user', content: 'Please answer.' },
    { role, content },
  ]
}

/** A call of Chat Completions that makes the reply to a text as reproducible as the server allows. */
export const toChatCall = (
  model: string,
  messages: readonly Message[],
  options: { max_tokens: number } & Record<string, unknown>,
): ScorerCall => ({
  path: '/v1/chat/completions',
  body: { model, messages, temperature: 0, stream: false, ...options },
})

/** Asks for the probabilities of the tokens in a reply. */
export const withLogprobs = { logprobs: true, top_logprobs: 5 } as const
