import type { ChatReply } from '#moderation/chat-reply.ts'
import type { JudgedContent, JudgedRule } from '#moderation/judge/judge.ts'

import type { JudgeModel, JudgeModelOptions } from './judge-model.ts'
import { promptVersion, writeInstructions, writeQuestion } from './judge-prompt.ts'
import { noVerdict, readJudgeReply, readVerdicts } from './judge-reply.ts'
import { likelihoodOf, tokenAt } from './token-choices.ts'

const rulesPerCall = 6
const tokensPerVerdict = 24

/** Any model that speaks Chat Completions and can follow instructions. */
export function createGenericModel({ model, post, createNonce }: JudgeModelOptions): JudgeModel {
  /** Not every server accepts `response_format` and `logprobs`. A server that refuses them is not sent them again. */
  let takesExtras = true

  async function ask(rules: readonly JudgedRule[], content: JudgedContent, signal: AbortSignal) {
    const question = { model, ...writeRequest(rules, content, createNonce()) }
    if (!takesExtras) return readScores(readJudgeReply(await post(question, signal)), rules.length)
    const reply = await post({ ...question, ...writeExtras(rules.length) }, signal)
    if (reply.status !== 400 && reply.status !== 422)
      return readScores(readJudgeReply(reply), rules.length)
    const plain = await post(question, signal)
    if (plain.status === 200) takesExtras = false
    return readScores(readJudgeReply(plain), rules.length)
  }

  return { promptVersion: `generic-${promptVersion}`, rulesPerCall, ask }
}

/** The body without the name of the model. */
const writeRequest = (rules: readonly JudgedRule[], content: JudgedContent, nonce: string) => ({
  messages: [
    { role: 'system', content: writeInstructions(rules) },
    { role: 'user', content: writeQuestion(content, nonce) },
  ],
  temperature: 0,
  max_tokens: 32 + rules.length * tokensPerVerdict,
})

/** Probabilities are requested only if the question is about one rule: in a screening the judge's own likelihoods say more. */
const writeExtras = (rules: number) => ({
  response_format: { type: 'json_schema', json_schema: verdictSchema },
  ...(rules === 1 ? { logprobs: true, top_logprobs: 5 } : {}),
})

const verdict = {
  type: 'object',
  properties: {
    i: { type: 'integer' },
    m: { type: 'integer', enum: [0, 1] },
    p: { type: 'integer' },
  },
  required: ['i', 'm', 'p'],
  additionalProperties: false,
}
const verdictSchema = {
  name: 'verdicts',
  strict: true,
  schema: {
    type: 'object',
    properties: { v: { type: 'array', items: verdict } },
    required: ['v'],
    additionalProperties: false,
  },
}

/** Scores in the order of the rules. A single rule gets the probability of its verdict if the server gives it, otherwise `p`. */
function readScores(reply: ChatReply, rules: number): number[] {
  const verdicts = readVerdicts(reply.text, rules)
  const [only] = verdicts
  if (rules === 1 && only) {
    const digitAt = /"m"\s{0,9}:\s{0,9}/.exec(reply.text)
    const choice = digitAt ? tokenAt(reply, digitAt.index + digitAt[0].length) : undefined
    const likelihood = likelihoodOf(choice, { yes: '1', no: '0' })
    if (likelihood === undefined) return [only.likelihood]
    if (only.isMatch ? likelihood < 0.5 : likelihood > 0.5)
      throw noVerdict('The judge contradicts itself.')
    return [likelihood]
  }
  return verdicts.toSorted((one, other) => one.rule - other.rule).map((each) => each.likelihood)
}
