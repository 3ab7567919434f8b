import { z } from 'zod'

import { type ChatReply, readChatReply } from '#moderation/chat-reply.ts'
import { JudgeFailure } from '#moderation/judge/judge.ts'

import type { PostedReply } from './judge-model.ts'

/** What the model wrote, or why there is nothing. */
export function readJudgeReply({ status, body }: PostedReply): ChatReply {
  if (status !== 200) throw failureOf(status)
  return readChatReply(parseJson(body), (what) =>
    noVerdict(`The reply of the judge cannot be used: ${what}.`),
  )
}

function failureOf(status: number): JudgeFailure {
  if (status === 401 || status === 403 || status === 404)
    return new JudgeFailure('misconfigured', `The judge refuses this gateway with ${status}.`)
  if (status === 429) return new JudgeFailure('throttled', 'The judge answered 429.')
  if (status === 408 || status >= 500)
    return new JudgeFailure('unavailable', `The judge answered ${status}.`)
  return noVerdict(`The judge answered ${status}.`)
}

const Verdicts = z.strictObject({
  v: z
    .array(
      z.strictObject({
        i: z.int().min(1),
        m: z.union([z.literal(0), z.literal(1)]),
        p: z.number().min(0).max(100),
      }),
    )
    .min(1)
    .max(64),
})

export type RuleVerdict = {
  readonly isMatch: boolean
  /** How likely it is that the rule matches, 0 to 1. */
  readonly likelihood: number
}

/**
 * The verdicts on rules 1 to `rules`, in the order of the reply, each with the number of its rule. A reply that omits a rule,
 * has one twice or contradicts itself is no verdict. It never counts as "no match".
 */
export function readVerdicts(reply: string, rules: number): (RuleVerdict & { rule: number })[] {
  const entries = readJsonReply(reply, Verdicts, ['i', 'm', 'p'], rules).v
  const numbers = new Set(entries.map(({ i }) => i))
  if (entries.length !== rules || numbers.size !== rules || Math.max(...numbers) !== rules)
    throw noVerdict('The judge did not answer for each rule once.')
  return entries.map(({ i, m, p }) => {
    if (m === 1 ? p < 50 : p > 50) throw noVerdict('The judge contradicts itself.')
    return { rule: i, isMatch: m === 1, likelihood: p / 100 }
  })
}

/** Some models put JSON into a code fence although they are told not to. */
const fence = /^```(?:json)?\n([^`]{0,10000})\n```$/

/**
 * The JSON of a reply. Each of these members must occur exactly `times`. A parser would keep the last of two equal members, and
 * the judge would have said both. The parser's error is left out, because it quotes the reply.
 */
export function readJsonReply<T>(
  reply: string,
  schema: z.ZodType<T>,
  members: readonly string[],
  times: number,
): T {
  const trimmed = reply.trim()
  const json = fence.exec(trimmed)?.[1] ?? trimmed
  const parsed = schema.safeParse(parseJson(json))
  if (!parsed.success)
    throw noVerdict('The reply of the judge does not have the form of a verdict.')
  if (members.some((member) => json.split(`"${member}"`).length - 1 !== times))
    throw noVerdict('The judge did not answer for each rule once.')
  return parsed.data
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

export const noVerdict = (message: string) => new JudgeFailure('no_verdict', message)
