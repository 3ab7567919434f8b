import { z } from 'zod'

import { JudgeFailure } from '#moderation/judge/judge.ts'

import type { PostedReply } from './judge-model.ts'
import { noVerdict } from './judge-reply.ts'
import type { TokenChoice } from './token-choices.ts'

const Choice = z.object({ token: z.string(), logprob: z.number() })
const Reply = z.object({
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z.object({ content: z.string().nullish() }),
        logprobs: z
          .object({
            content: z.array(Choice.extend({ top_logprobs: z.array(Choice).nullish() })).nullish(),
          })
          .nullish(),
      }),
    )
    .min(1),
})

/** `tokens` is empty if the server gives no probabilities. */
export type ChatReply = { readonly content: string; readonly tokens: readonly TokenChoice[] }

/** What the model wrote, or why there is nothing. */
export function readJudgeChatReply({ status, body }: PostedReply): ChatReply {
  if (status !== 200) throw failureOf(status)
  const [choice] = parseReply(body).choices
  // A verdict that was cut off may still be valid JSON, for example if a model repeats itself.
  if (choice?.finish_reason === 'length') throw noVerdict('The reply of the judge was cut off.')
  const content = choice?.message.content
  if (!content) throw noVerdict('The judge wrote nothing.')
  const tokens = choice.logprobs?.content ?? []
  return {
    content,
    tokens: tokens.map(({ token, logprob, top_logprobs: others }) => ({
      token,
      alternatives: others?.length ? others : [{ token, logprob }],
    })),
  }
}

/** The parser's own error is left out, because it quotes the reply. */
function parseReply(body: string) {
  try {
    return Reply.parse(JSON.parse(body))
  } catch {
    throw noVerdict('The judge did not answer with a chat completion.')
  }
}

function failureOf(status: number): JudgeFailure {
  if (status === 401 || status === 403 || status === 404)
    return new JudgeFailure('misconfigured', `The judge refuses this gateway with ${status}.`)
  if (status === 429) return new JudgeFailure('throttled', 'The judge answered 429.')
  if (status === 408 || status >= 500)
    return new JudgeFailure('unavailable', `The judge answered ${status}.`)
  return noVerdict(`The judge answered ${status}.`)
}
