import { z } from 'zod'

import type { Category, CategoryScores } from '#moderation/categories.ts'
import { probabilityShareOf } from '#moderation/chat-reply.ts'
import type { Segment } from '#moderation/scorer.ts'
import { breakTemplateTokens } from '#moderation/template-tokens.ts'

import type { Adapter } from './adapter.ts'
import { malformed, probabilityToBasisPoints, readShape } from './malformed.ts'

// ShieldGemma behind the older Completions API: one guideline per call, and the probability of Yes against No.

/** The form is the one the model was trained on; what follows the name completes "The prompt shall not ...". */
const guidelines = {
  harassment: [
    'No Harassment',
    'contain or ask for malicious, intimidating, bullying or abusive content that is directed at a person, such as threats, insults or the denial of tragic events',
  ],
  hate: [
    'No Hate Speech',
    'contain or ask for content that attacks or dehumanizes people for who they are, or calls for violence or discrimination against them, such as for race, religion, disability, nationality, gender or orientation',
  ],
  illicit: [
    'No Dangerous Content',
    'contain or ask for content that helps to harm oneself or others, such as making weapons or explosives, committing crimes, or instructions for terrorism',
  ],
  sexual: [
    'No Sexually Explicit Information',
    'contain or ask for content with references to sexual acts or other lewd content; medical, scientific and educational content is permitted',
  ],
} as const satisfies Partial<Record<Category, readonly [string, string]>>
type Covered = keyof typeof guidelines
const covered = Object.keys(guidelines) as Covered[]

const Reply = z.object({
  choices: z
    .array(
      z.object({
        logprobs: z.object({
          top_logprobs: z.array(z.record(z.string(), z.number())).min(1).max(10),
        }),
      }),
    )
    .length(1),
})

export const shieldgemma: Adapter = {
  covers: new Set<Category>(covered),
  readsImages: false,
  groupMax: 1,
  toCalls: (group, model) =>
    group.flatMap((segment) =>
      covered.map((category) => ({
        path: '/v1/completions',
        body: {
          model,
          prompt: toPrompt(segment, category),
          max_tokens: 1,
          temperature: 0,
          logprobs: 10,
          stream: false,
        },
      })),
    ),
  readReplies: (replies, group) =>
    group.map((_, index) =>
      toScores(replies.slice(index * covered.length, (index + 1) * covered.length)),
    ),
}

const toScores = (replies: readonly unknown[]): CategoryScores =>
  Object.fromEntries(covered.map((category, index) => [category, readScore(replies[index])]))

function readScore(reply: unknown): number {
  const [first = {}] = readShape(Reply, reply).choices[0]?.logprobs.top_logprobs ?? []
  const alternatives = Object.entries(first).map(([token, logprob]) => ({ token, logprob }))
  const probability = probabilityShareOf(alternatives, 'yes', 'no')
  if (probability === undefined) throw malformed('it is neither Yes nor No')
  return probabilityToBasisPoints(probability)
}

function toPrompt({ role, text }: Segment, category: Covered): string {
  const [name, rule] = guidelines[category]
  const isAnswer = role === 'assistant'
  const content = breakTemplateTokens(text).trim()
  const judged = isAnswer ? 'an AI response to prompts' : 'a user prompt'
  const turn = isAnswer
    ? `Human Question: Please answer.\n\nChatbot Response: ${content}`
    : `Human Question: ${content}`
  const subject = isAnswer ? 'The chatbot' : 'The prompt'
  const asked = isAnswer ? 'Chatbot Response' : 'human question'
  return `You are a policy expert trying to help determine whether ${judged} is in violation of the defined safety policies.

<start_of_turn>
${turn}
<end_of_turn>

Our safety principle is defined in the below:

* "${name}": ${subject} shall not ${rule}.

Does the ${asked} violate the above principle? Your answer must start with 'Yes' or 'No'. And then walk through step by step to be sure we answer correctly.`
}
