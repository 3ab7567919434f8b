import type { Category, CategoryScores } from '#moderation/categories.ts'
import { probabilityShareOf, readChatReply, type ReplyToken } from '#moderation/chat-reply.ts'

import type { Adapter } from './adapter.ts'
import { toChatCall, toConversation, withLogprobs } from './chat.ts'
import { malformed, probabilityToBasisPoints } from './malformed.ts'

// Granite Guardian 3.3 and 4.1 behind Chat Completions: one criterion per call, reply `<score> yes </score>`.

/** The criteria of its template that make up a category; its score is the highest of theirs. */
const criteria = [
  ['social_bias', 'hate'],
  ['sexual_content', 'sexual'],
  ['unethical_behavior', 'illicit'],
  ['violence', 'illicit'],
] as const satisfies readonly (readonly [string, Category])[]

export const granite: Adapter = {
  covers: new Set<Category>(criteria.map(([, category]) => category)),
  readsImages: false,
  groupMax: 1,
  toCalls: (group, model) =>
    group.flatMap((segment) =>
      criteria.map(([criterion]) =>
        toChatCall(model, toConversation(segment), {
          max_tokens: 20,
          ...withLogprobs,
          chat_template_kwargs: { guardian_config: { criteria_id: criterion }, think: false },
        }),
      ),
    ),
  readReplies: (replies, group) =>
    group.map((_, index) =>
      toScores(replies.slice(index * criteria.length, (index + 1) * criteria.length)),
    ),
}

function toScores(replies: readonly unknown[]): CategoryScores {
  const scores: Partial<Record<Category, number>> = {}
  criteria.forEach(([, category], index) => {
    scores[category] = Math.max(scores[category] ?? 0, readScore(replies[index]))
  })
  return scores
}

const scoreTag = /<score>\s*(yes|no)\s*<\/score>/gi

/** The last tag counts, because an earlier one may be quoted from the scored text. */
function readScore(reply: unknown): number {
  const { text, tokens } = readChatReply(reply, malformed)
  const verdict = [...text.matchAll(scoreTag)].at(-1)?.[1]?.toLowerCase()
  if (verdict === undefined) throw malformed('it has no score')
  if (tokens.length === 0) throw malformed('it has no probabilities; the server must give logprobs')
  const decisive = findDecisive(tokens)
  const probability = decisive && probabilityShareOf(decisive.alternatives, 'yes', 'no')
  if (probability === undefined) throw malformed('its probabilities do not belong to its score')
  if (verdict === 'yes' ? probability < 0.5 : probability > 0.5) {
    throw malformed('its score contradicts its probabilities')
  }
  return probabilityToBasisPoints(probability)
}

const findDecisive = (tokens: readonly ReplyToken[]): ReplyToken | undefined =>
  tokens.findLast(({ token }) => /^\s*(?:yes|no)\s*$/i.test(token))
