import type { Category, CategoryScores } from '#moderation/categories.ts'
import { readChatReply } from '#moderation/chat-reply.ts'

import type { Adapter } from './adapter.ts'
import { toChatCall, toConversation } from './chat.ts'
import { malformed } from './malformed.ts'

// Qwen3Guard-Gen behind Chat Completions. A reply has the lines `Safety: ...` and `Categories: ...`, for answers also `Refusal: ...`.

/** What the model's categories mean here; those with null are known and not scored. */
const categoryOf: Readonly<Record<string, Category | null>> = {
  Violent: 'illicit',
  'Non-violent Illegal Acts': 'illicit',
  'Sexual Content or Sexual Acts': 'sexual',
  'Suicide & Self-Harm': 'self-harm',
  PII: null,
  'Personally Identifiable Information': null,
  'Unethical Acts': null,
  'Politically Sensitive Topics': null,
  'Copyright Violation': null,
  Jailbreak: null,
}
const covered = ['illicit', 'sexual', 'self-harm'] as const satisfies readonly Category[]

/** Basis points of the model's three words, and of categories that it does not name. */
const scores: Readonly<Record<string, number>> = { Safe: 500, Controversial: 5000, Unsafe: 9500 }
const unnamed = 500

export const qwenGuard: Adapter = {
  covers: new Set<Category>(covered),
  readsImages: false,
  groupMax: 1,
  toCalls: (group, model) =>
    group.map((segment) => toChatCall(model, toConversation(segment), { max_tokens: 128 })),
  readReplies: (replies) => replies.map(readReply),
}

function readReply(reply: unknown): CategoryScores {
  const lines = readChatReply(reply, malformed)
    .text.trim()
    .split(/\s*\n\s*/)
  const valueOf = (name: string) => {
    const [found, ...others] = lines.filter((line) => line.startsWith(`${name}: `))
    if (found === undefined || others.length > 0) throw malformed(`it needs one line '${name}'`)
    return found.slice(name.length + 2)
  }
  const safety = valueOf('Safety')
  const score = Object.hasOwn(scores, safety) ? scores[safety] : undefined
  if (score === undefined) throw malformed('its safety is not one of the three words')
  const categories = valueOf('Categories')
  if ((safety === 'Safe') !== (categories === 'None')) {
    throw malformed('its safety contradicts its categories')
  }
  const named = new Set(categories === 'None' ? [] : categories.split(/\s*,\s*/).map(readCategory))
  return Object.fromEntries(covered.map((each) => [each, named.has(each) ? score : unnamed]))
}

function readCategory(name: string): Category | null {
  const category = Object.hasOwn(categoryOf, name) ? categoryOf[name] : undefined
  if (category === undefined) throw malformed('it has a category that is not known')
  return category
}
