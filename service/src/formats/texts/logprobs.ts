import type { Json } from '#formats/answer.ts'
import { isObject } from '#formats/json-values.ts'

import type { TextCollector } from './text-collector.ts'

/**
 * The tokens of a text with their probabilities. Together they are the text once more. The tokens that the model could have
 * chosen instead are texts as well: the first alternatives of all tokens are one, the second ones another, because a client
 * can show them so. `channel` is null where the tokens are not continued. Returns false for anything but a list of such
 * tokens.
 */
export function addLogprobs(texts: TextCollector, channel: string | null, list: unknown): boolean {
  if (!isList(list)) return false
  const add = (text: string, name: string) => {
    if (channel === null) texts.addOther(text)
    else texts.addResumable(`${channel}${name}`, text)
  }
  const { chosen, alternatives } = joinTokens(list, (name, value) => texts.addStrings(name, value))
  add(chosen, '')
  for (const [place, text] of alternatives.entries()) add(text, `.alternatives${place}`)
  return true
}

/** The same texts of the tokens in a request; null for anything but a list of tokens. */
export function tokenTexts(list: unknown, onOther: (value: unknown) => void): string[] | null {
  if (!isList(list)) return null
  const { chosen, alternatives } = joinTokens(list, (name, value) => onOther({ [name]: value }))
  return [chosen, ...alternatives]
}

type OnOther = (name: string, value: unknown) => void

function joinTokens(list: readonly Json[], onOther: OnOther) {
  const alternatives: string[] = []
  const addAlternatives: OnOther = (name, value) => {
    if (name !== 'top_logprobs' || !isList(value)) return onOther(name, value)
    for (const [place, token] of value.entries()) {
      alternatives[place] = (alternatives[place] ?? '') + tokenIn(token, onOther)
    }
  }
  const chosen = list.map((token) => tokenIn(token, addAlternatives)).join('')
  return { chosen, alternatives }
}

/** The text of a token; `onOther` gets its other members. */
function tokenIn(item: Json, onOther: OnOther): string {
  let token = ''
  for (const name in item) {
    const value = item[name]
    if (name === 'token' && typeof value === 'string') token = value
    else if (value !== null) onOther(name, value)
  }
  return token
}

const isList = (list: unknown): list is Json[] => Array.isArray(list) && list.every(isObject)
