import type { Json } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { asIndex, asObject, asText, listOf, objectOf } from '#inference/untyped.ts'

import {
  addText,
  endBlock,
  type Item,
  type Reading,
  restOf,
  type ShownReasoning,
  startBlock,
} from './reading.ts'

type Message = Item & { type: 'message' }
type Thought = Item & { type: 'reasoning' }
type PartType = 'text' | 'refusal'

/** The members that hold the text of a part, by its type on the wire. */
const partTypes = new Map<unknown, { type: PartType; member: string }>([
  ['output_text', { type: 'text', member: 'text' }],
  ['refusal', { type: 'refusal', member: 'refusal' }],
])

export const kindOf = (part: Json) => partTypes.get(part['type'])

/** A part of a message; its block starts with whatever is heard of it first. */
export function partOf(reading: Reading, { parts }: Message, place: unknown, type: PartType) {
  const index = asIndex(place) ?? 0
  const known = parts.get(index)
  if (known && known.type !== type) throw new BrokenAnswer('A part of a message changes its kind.')
  if (known) return known
  if (type === 'refusal') reading.hasRefused = true
  const part = { ...startBlock(reading, { type }), type }
  parts.set(index, part)
  return part
}

export function addPartText(reading: Reading, part: ReturnType<typeof partOf>, text: string) {
  addText(reading, part, text)
  part.text += text
}

/** The whole text of a part, when it is complete. */
export function completePart(reading: Reading, part: ReturnType<typeof partOf>, whole: unknown) {
  const rest = restOf(asText(whole) ?? '', part.text, part)
  if (rest !== '') addPartText(reading, part, rest)
}

/** The whole content of a message. */
export function readParts(reading: Reading, item: Message, content: unknown) {
  for (const [index, value] of listOf(content).entries()) {
    const written = objectOf(value)
    const kind = kindOf(written)
    if (!kind) continue
    const part = partOf(reading, item, index, kind.type)
    completePart(reading, part, written[kind.member])
    endBlock(reading, part)
  }
}

/** Raw reasoning counts only where there is no summary: whichever comes first is shown. */
export function shownReasoning(item: Thought, from: ShownReasoning['from']): ShownReasoning | null {
  item.shown ??= { from, texts: new Map() }
  return item.shown.from === from ? item.shown : null
}

/** More of one text; several texts become one, with a blank line between them. */
export function addReasoning(
  reading: Reading,
  item: Thought,
  { texts }: ShownReasoning,
  { index, text }: { index: number; text: string },
) {
  if (text === '') return
  item.block ??= startBlock(reading, { type: 'reasoning' })
  const read = texts.get(index) ?? ''
  const isNext = read === '' && texts.size > 0
  addText(reading, item.block, isNext ? `\n\n${text}` : text)
  texts.set(index, read + text)
}

const sources = ['summary', 'content'] as const

/** All texts of a reasoning item, when it is complete. */
export function readReasoningTexts(reading: Reading, item: Thought, written: Json) {
  const from = item.shown?.from ?? sources.find((name) => textsOf(written[name]).some(Boolean))
  const shown = from && shownReasoning(item, from)
  if (!from || !shown) return
  for (const [index, text] of textsOf(written[from]).entries()) {
    completeReasoning(reading, item, shown, { index, text })
  }
}

/** One whole text of reasoning. */
export function completeReasoning(
  reading: Reading,
  item: Thought,
  shown: ShownReasoning,
  { index, text: whole }: { index: number; text: string },
) {
  const text = restOf(whole, shown.texts.get(index) ?? '', item.block)
  addReasoning(reading, item, shown, { index, text })
}

const textsOf = (parts: unknown): string[] =>
  listOf(parts).map((part) => asText(asObject(part)?.['text']) ?? '')
