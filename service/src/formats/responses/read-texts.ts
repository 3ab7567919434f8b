import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asIndex, asObject, asText, listOf, objectOf } from '#formats/json-values.ts'

import {
  addText,
  endBlock,
  type Item,
  type AnswerState,
  missingText,
  type ReasoningTexts,
  startBlock,
} from './answer-state.ts'

type Message = Item & { type: 'message' }
type ReasoningItem = Item & { type: 'reasoning' }
type PartType = 'text' | 'refusal'

/** The members that hold the text of a part, by its type on the wire. */
const partTypes = new Map<unknown, { type: PartType; member: string }>([
  ['output_text', { type: 'text', member: 'text' }],
  ['refusal', { type: 'refusal', member: 'refusal' }],
])

export const partTypeOf = (part: Json) => partTypes.get(part['type'])

/** A part of a message. Its block starts with the first frame that mentions it. */
export function findOrStartPart(
  state: AnswerState,
  { parts }: Message,
  contentIndex: unknown,
  type: PartType,
) {
  const index = asIndex(contentIndex) ?? 0
  const known = parts.get(index)
  if (known && known.type !== type) throw new BrokenAnswer('A part of a message changes its kind.')
  if (known) return known
  if (type === 'refusal') state.hasRefused = true
  const part = { ...startBlock(state, { type }), type }
  parts.set(index, part)
  return part
}

export function addPartText(
  state: AnswerState,
  part: ReturnType<typeof findOrStartPart>,
  text: string,
) {
  addText(state, part, text)
  part.text += text
}

export function completePart(
  state: AnswerState,
  part: ReturnType<typeof findOrStartPart>,
  whole: unknown,
) {
  const rest = missingText(asText(whole) ?? '', part.text, part)
  if (rest !== '') addPartText(state, part, rest)
}

export function completeParts(state: AnswerState, item: Message, content: unknown) {
  for (const [index, value] of listOf(content).entries()) {
    const written = objectOf(value)
    const kind = partTypeOf(written)
    if (!kind) continue
    const part = findOrStartPart(state, item, index, kind.type)
    completePart(state, part, written[kind.member])
    endBlock(state, part)
  }
}

/** Of summary and raw reasoning, only the one that comes first is read; null for the other. */
export function chooseReasoning(
  item: ReasoningItem,
  from: ReasoningTexts['from'],
): ReasoningTexts | null {
  item.reasoning ??= { from, texts: new Map() }
  return item.reasoning.from === from ? item.reasoning : null
}

/** Several texts become one, with a blank line between them. */
export function addReasoningDelta(
  state: AnswerState,
  item: ReasoningItem,
  { texts }: ReasoningTexts,
  { index, text }: { index: number; text: string },
) {
  if (text === '') return
  item.block ??= startBlock(state, { type: 'reasoning' })
  const read = texts.get(index) ?? ''
  const isNext = read === '' && texts.size > 0
  addText(state, item.block, isNext ? `\n\n${text}` : text)
  texts.set(index, read + text)
}

const sources = ['summary', 'content'] as const

export function completeReasoning(state: AnswerState, item: ReasoningItem, written: Json) {
  const from = item.reasoning?.from ?? sources.find((name) => textsOf(written[name]).some(Boolean))
  const reasoning = from && chooseReasoning(item, from)
  if (!from || !reasoning) return
  for (const [index, text] of textsOf(written[from]).entries()) {
    completeReasoningPart(state, item, reasoning, { index, text })
  }
}

export function completeReasoningPart(
  state: AnswerState,
  item: ReasoningItem,
  reasoning: ReasoningTexts,
  { index, text: whole }: { index: number; text: string },
) {
  const text = missingText(whole, reasoning.texts.get(index) ?? '', item.block)
  addReasoningDelta(state, item, reasoning, { index, text })
}

const textsOf = (parts: unknown): string[] =>
  listOf(parts).map((part) => asText(asObject(part)?.['text']) ?? '')
