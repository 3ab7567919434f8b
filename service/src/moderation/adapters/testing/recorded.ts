import { readFileSync } from 'node:fs'

type Choice = {
  message: { content: string }
  logprobs: { content: { token: string; top_logprobs: unknown[] }[] } | null
  finish_reason: string
}

/** A reply in the form in which its provider sends it, and what was scored. Neither has a text of any category. */
export type Recorded = {
  input: string | string[]
  reply: { choices: Choice[]; results: Record<string, Record<string, unknown>>[] }
}

/** A copy of its own, so that a test may change it. */
export const readRecorded = (name: string) =>
  JSON.parse(readFileSync(new URL(`${name}.json`, import.meta.url), 'utf8')) as Recorded

/** The recorded reply of a chat model with another text, and without probabilities, which would not belong to it. */
export function chatReplyOf(name: string, content: string) {
  const { reply } = readRecorded(name)
  const [choice] = reply.choices
  return {
    ...reply,
    choices: [{ ...choice, message: { role: 'assistant', content }, logprobs: null }],
  }
}
