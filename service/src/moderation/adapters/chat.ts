import { z } from 'zod'

import type { Segment } from '#moderation/scorer.ts'
import { breakTemplateTokens } from '#moderation/template-tokens.ts'

import type { ScorerCall } from './adapter.ts'
import { malformed, readShape } from './malformed.ts'
import type { Alternatives } from './probabilities.ts'

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

const Token = z.object({ token: z.string(), logprob: z.number() })
const ChatReply = z.object({
  choices: z
    .array(
      z.object({
        message: z.object({ content: z.string().max(100_000) }),
        finish_reason: z.string().nullish(),
        logprobs: z
          .object({
            content: z
              .array(Token.extend({ top_logprobs: z.array(Token).max(100).default([]) }))
              .max(10_000)
              .nullish(),
          })
          .nullish(),
      }),
    )
    .length(1),
})

/** One token of a reply: what was written, and what could have been written in its place. */
export type ReplyToken = { token: string; alternatives: Alternatives }

/** The text of a reply and its tokens, which are undefined where the server does not give probabilities. */
export function readChatReply(reply: unknown): {
  text: string
  tokens: readonly ReplyToken[] | undefined
} {
  const [choice] = readShape(ChatReply, reply).choices
  if (!choice) throw malformed('it is empty')
  // Half a list of categories would look like a complete one.
  if (choice.finish_reason === 'length') throw malformed('it was cut off')
  const tokens = choice.logprobs?.content?.map(({ token, logprob, top_logprobs: others }) => ({
    token,
    alternatives: others.length > 0 ? others : [{ token, logprob }],
  }))
  return { text: choice.message.content, tokens: tokens?.length ? tokens : undefined }
}
