import type { Json } from '#formats/answer.ts'
import { isObject } from '#formats/json-values.ts'

import type { TextCollector } from './text-collector.ts'

/**
 * The tokens of a text with their probabilities. Together they are the text once more. The tokens that the model could
 * have chosen instead are one text of their own, one per line. `channel` is null where the tokens are not continued.
 * Returns false for anything but a list of such tokens.
 */
export function addLogprobs(texts: TextCollector, channel: string | null, list: unknown): boolean {
  if (!isList(list)) return false
  const others: string[] = []
  const readOthers = (name: string, value: unknown) =>
    name === 'top_logprobs' && isList(value) && addTokens(others, texts, value, () => false)
  const chosen: string[] = []
  addTokens(chosen, texts, list, readOthers)
  if (channel === null) texts.addOther(chosen.join(''))
  else texts.addResumable(channel, chosen.join(''))
  if (others.length > 0) texts.addOther(others.join('\n'))
  return true
}

function addTokens(
  tokens: string[],
  texts: TextCollector,
  list: readonly Json[],
  readMore: (name: string, value: unknown) => boolean,
) {
  for (const item of list) {
    texts.addMembers(item, (name, value) => {
      if (name !== 'token' || typeof value !== 'string') return readMore(name, value)
      tokens.push(value)
      return true
    })
  }
  return true
}

const isList = (list: unknown): list is Json[] => Array.isArray(list) && list.every(isObject)
