import { z } from 'zod'

const Alternative = z.object({ token: z.string(), logprob: z.number() })
const Token = Alternative.extend({ top_logprobs: z.array(Alternative).max(100).nullish() })
const Reply = z.object({
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z.object({ content: z.string().max(100_000).nullish() }),
        logprobs: z.object({ content: z.array(Token).max(10_000).nullish() }).nullish(),
      }),
    )
    .length(1),
})

/** The tokens that could have stood in one place of a reply, with their logarithmic probabilities. */
type Alternatives = readonly { readonly token: string; readonly logprob: number }[]

/** One token of a reply: what was written, and the likeliest in its place, itself included. */
export type ReplyToken = { readonly token: string; readonly alternatives: Alternatives }

/** `tokens` is empty if the server gives no probabilities. */
export type ChatReply = { readonly text: string; readonly tokens: readonly ReplyToken[] }

/**
 * What a model has written, in a reply of Chat Completions. Where that is nothing, or not all of it, the error of `fail` is thrown,
 * which gets no word of the reply: it may repeat what the model was asked about.
 */
export function readChatReply(reply: unknown, fail: (what: string) => Error): ChatReply {
  const [choice] = Reply.safeParse(reply).data?.choices ?? []
  if (!choice) throw fail('it is no chat completion')
  // Half a list of categories would look like a complete one, and a verdict that was cut off may still be valid JSON.
  if (choice.finish_reason === 'length') throw fail('it was cut off')
  const { content } = choice.message
  if (!content) throw fail('it is empty')
  const tokens = choice.logprobs?.content ?? []
  return {
    text: content,
    tokens: tokens.map(({ token, logprob, top_logprobs: others }) => ({
      token,
      alternatives: others?.length ? others : [{ token, logprob }],
    })),
  }
}

/**
 * How probable `wanted` is compared with `other`, the two words that a model may answer with. Several tokens stand for one
 * word: with and without a space before it, in lower and upper case. Undefined if neither word is among the alternatives.
 */
export function probabilityShareOf(
  alternatives: Alternatives,
  wanted: string,
  other: string,
): number | undefined {
  const sumOf = (word: string) =>
    alternatives
      .filter(({ token }) => plainWord(token) === word)
      .reduce((sum, { logprob }) => sum + Math.exp(Math.min(logprob, 0)), 0)
  const [forIt, against] = [sumOf(wanted), sumOf(other)]
  return forIt + against > 0 ? forIt / (forIt + against) : undefined
}

export const plainWord = (token: string) => token.trim().toLowerCase()
