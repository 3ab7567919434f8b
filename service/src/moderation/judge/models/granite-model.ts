import type { ChatReply } from '#moderation/chat-reply.ts'
import type { JudgedContent, JudgedRule } from '#moderation/judge/judge.ts'
import { breakTemplateTokens } from '#moderation/template-tokens.ts'

import type { JudgeModel, JudgeModelOptions } from './judge-model.ts'
import { contextMaxCharacters } from './judge-prompt.ts'
import { noVerdict, readJudgeReply } from './judge-reply.ts'
import { lastCharacters } from './prompt-encoding.ts'
import { likelihoodOf, tokenAt } from './token-choices.ts'

/**
 * Granite Guardian with criteria of one's own, one rule a call. The names in `chat_template_kwargs` are those of the
 * template that comes with version 3.3: a server with another template would judge by criteria of its own.
 */
export function createGraniteModel({ model, post }: JudgeModelOptions): JudgeModel {
  return {
    promptVersion: 'granite-1',
    rulesPerCall: 1,
    async ask(rules, content, signal) {
      const [rule] = rules
      if (!rule) return []
      const reply = await post({ model, ...writeGraniteRequest(rule, content) }, signal)
      return [readGraniteScore(readJudgeReply(reply))]
    },
  }
}

const writeGraniteRequest = (rule: JudgedRule, content: JudgedContent) => ({
  messages: writeMessages(content),
  chat_template_kwargs: {
    guardian_config: { custom_criteria: breakTemplateTokens(rule.text) },
    think: false,
  },
  temperature: 0,
  max_tokens: 20,
  logprobs: true,
  top_logprobs: 5,
})

/** The last message is what is judged. A message of the assistant needs one of the user before it. */
function writeMessages({ direction, context, text }: JudgedContent) {
  const judged = breakTemplateTokens(text)
  if (direction === 'request') return [{ role: 'user', content: judged }]
  const before = breakTemplateTokens(lastCharacters(context, contextMaxCharacters))
  return [
    { role: 'user', content: before || '(not shown)' },
    { role: 'assistant', content: judged },
  ]
}

const scoreTag = /<score>\s{0,9}(yes|no)\s{0,9}<\/score>/gi

/** The scores if the server gives no probabilities: a verdict without degrees. */
const certain = { yes: 0.95, no: 0.05 }

/** The last score counts, because earlier ones may be quoted. */
function readGraniteScore(reply: ChatReply): number {
  const tag = [...reply.text.matchAll(scoreTag)].at(-1)
  if (!tag?.[1]) throw noVerdict('The judge did not answer with a score.')
  const isMatch = tag[1].toLowerCase() === 'yes'
  const wordAt = tag.index + tag[0].toLowerCase().indexOf(isMatch ? 'yes' : 'no', '<score>'.length)
  const likelihood = likelihoodOf(tokenAt(reply, wordAt), { yes: 'yes', no: 'no' })
  if (likelihood === undefined) return isMatch ? certain.yes : certain.no
  if (isMatch ? likelihood < 0.5 : likelihood > 0.5)
    throw noVerdict('The judge contradicts itself.')
  return likelihood
}
