import type { Category, CategoryScores } from '#moderation/categories.ts'
import { probabilityShareOf, readChatReply, type ReplyToken } from '#moderation/chat-reply.ts'

import type { Adapter } from './adapter.ts'
import { toChatCall, toConversation, withLogprobs } from './chat.ts'
import { malformed, probabilityToBasisPoints } from './malformed.ts'

// Llama Guard 3 and 4 behind Chat Completions. A reply is `safe`, or `unsafe` and a line with codes such as `S1,S10`.

/** What the codes mean here. Codes without categories are known and not scored, such as defamation. */
const categoriesOf: Readonly<Record<string, readonly Category[]>> = {
  S1: ['illicit'],
  S2: ['illicit'],
  S3: ['illicit', 'sexual'],
  S4: ['sexual/minors'],
  S5: [],
  S6: [],
  S7: [],
  S8: [],
  S9: ['illicit'],
  S10: ['hate'],
  S11: ['self-harm'],
  S12: ['sexual'],
  S13: [],
  S14: [],
}
const covers = new Set(Object.values(categoriesOf).flat())

/** For servers without probabilities: the reply is right most of the time. */
const withoutProbabilities = { safe: 0.05, unsafe: 0.95 } as const
/**
 * The highest score of a category that the reply does not name. The model's uncertainty says nothing about a single category,
 * so a text that is slightly suspect for one reason must not count for all others.
 */
const unnamedMax = 0.05

export const llamaGuard: Adapter = {
  covers,
  readsImages: false,
  groupMax: 1,
  toCalls: (group, model) =>
    group.map((segment) =>
      // All fourteen codes need 56 tokens.
      toChatCall(model, toConversation(segment), { max_tokens: 100, ...withLogprobs }),
    ),
  readReplies: (replies) => replies.map(readReply),
}

function readReply(reply: unknown): CategoryScores {
  const { text, tokens } = readChatReply(reply, malformed)
  const [verdict = '', codes = '', ...others] = text.trim().split(/\s*\n\s*/)
  if ((verdict !== 'safe' && verdict !== 'unsafe') || others.length > 0) {
    throw malformed('it is neither safe nor unsafe')
  }
  if ((verdict === 'safe') !== (codes === '')) throw malformed('its verdict contradicts its codes')
  const named = new Set(codes === '' ? [] : codes.split(',').flatMap(readCode))
  const probability = probabilityOfUnsafe(verdict, tokens)
  const entries = [...covers].map((category) => {
    const isNamed = named.has(category)
    return [
      category,
      probabilityToBasisPoints(isNamed ? probability : Math.min(probability, unnamedMax)),
    ]
  })
  return Object.fromEntries(entries) as CategoryScores
}

function readCode(code: string): readonly Category[] {
  const found = Object.hasOwn(categoriesOf, code.trim()) ? categoriesOf[code.trim()] : undefined
  if (!found) throw malformed('it has a code that is not known')
  return found
}

function probabilityOfUnsafe(verdict: 'safe' | 'unsafe', tokens: readonly ReplyToken[]): number {
  if (tokens.length === 0) return withoutProbabilities[verdict]
  const decisive = tokens.find(({ token }) => token.trim() !== '')
  const probability = decisive && probabilityShareOf(decisive.alternatives, 'unsafe', 'safe')
  if (probability === undefined) throw malformed('its probabilities do not belong to its verdict')
  const isContradiction = verdict === 'unsafe' ? probability < 0.5 : probability > 0.5
  if (isContradiction) throw malformed('its verdict contradicts its probabilities')
  return probability
}
