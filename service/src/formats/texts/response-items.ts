import type { Json } from '#formats/answer.ts'
import { isObject } from '#formats/json-values.ts'

import { addLogprobs } from './logprobs.ts'
import type { TextCollector } from './text-collector.ts'
import { proseGroup, reasoningGroup } from './text-views.ts'

/** An item of the output, as a whole. Items of every type name their texts alike. */
export function readItem(texts: TextCollector, path: string, item: Json) {
  const { type } = item
  texts.addMembers(item, (name, value) => {
    switch (name) {
      case 'content':
      case 'summary':
        return readParts(texts, `${path}/${name}`, value)
      case 'arguments':
        return texts.addJson(`${path}/${name}`, value, 'whole')
      case 'input':
        return texts.add(`${path}/${name}`, value, 'whole')
      case 'encrypted_content':
        return typeof value === 'string' && texts.noteUnreadable()
      case 'result':
        // An image in base64.
        return type === 'image_generation_call' && texts.noteUnreadable()
      default:
        return false
    }
  })
}

function readParts(texts: TextCollector, path: string, parts: unknown): boolean {
  if (!Array.isArray(parts)) return false
  for (const [index, part] of parts.entries()) {
    if (isObject(part)) readPart(texts, `${path}${index}`, part)
    else texts.addStrings('content', part)
  }
  return true
}

const groups: ReadonlyMap<unknown, string> = new Map([
  ['output_text', proseGroup],
  ['reasoning_text', reasoningGroup],
  ['summary_text', reasoningGroup],
])

/** A part of a message or of reasoning, as a whole. */
export function readPart(texts: TextCollector, path: string, part: Json) {
  const textMember = part['type'] === 'refusal' ? 'refusal' : 'text'
  const group = groups.get(part['type'])
  texts.addMembers(part, (name, value) => {
    if (name === textMember) return texts.add(path, value, 'whole', group)
    return name === 'logprobs' && addLogprobs(texts, null, value)
  })
}
