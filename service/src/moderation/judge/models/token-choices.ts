import {
  type ChatReply,
  plainWord,
  probabilityShareOf,
  type ReplyToken,
} from '#moderation/chat-reply.ts'

/**
 * How likely `yes` was compared with `no` at the place of a token, 0 to 1. Undefined if the token is neither, because a
 * tokenizer may join it with its neighbours.
 */
export function likelihoodOf(
  choice: ReplyToken | undefined,
  { yes, no }: { yes: string; no: string },
): number | undefined {
  const word = choice && plainWord(choice.token)
  return choice && (word === yes || word === no)
    ? probabilityShareOf(choice.alternatives, yes, no)
    : undefined
}

/**
 * The token at an offset of the text. Undefined if the tokens do not make up the text, for example if a server also lists
 * those of its reasoning: the token at that offset would be another one.
 */
export function tokenAt({ text, tokens }: ChatReply, offset: number): ReplyToken | undefined {
  const written = tokens.map(({ token }) => token).join('')
  if (!written.startsWith(text)) return undefined
  let end = 0
  for (const choice of tokens) {
    end += choice.token.length
    if (end > offset) return choice
  }
  return undefined
}
