import type { AnswerEvent, Block, Frame, Piece } from '#formats/answer.ts'
import { addCounts, countEntities } from '#redaction/entity-counts.ts'
import type { EntityKind } from '#redaction/entity.ts'
import type { Placeholders } from '#redaction/placeholders.ts'
import { pushInSteps, redactInSteps, TextRedactor } from '#redaction/text-redactor.ts'
import { type Asker, runInTurns, type Steps } from '#text/steps.ts'

import { addArguments, ArgumentsCounter } from './arguments-counter.ts'

/** Reasoning that is longer is withheld. */
const reasoningMost = 1024 * 1024

type OpenBlock =
  | { kind: 'text'; redactor: TextRedactor }
  /** Whether it is sealed is known only at its end, and sealed reasoning is sent as it is or not at all. */
  | { kind: 'reasoning'; text: string }
  | { kind: 'arguments'; counter: ArgumentsCounter }

/** Where it is noted what was found. */
export type Redacting = {
  placeholders: Placeholders
  withheld: Map<EntityKind, number>
  passed: Map<EntityKind, number>
}

/**
 * Replaces personal data and secrets in the events of one answer, before they are written in the caller's format. Text leaves as
 * soon as it is final. The arguments of tool calls pass: a changed argument is a wrong action.
 */
export class AnswerRedactor {
  readonly #redacting: Redacting
  readonly #blocks = new Map<number, OpenBlock>()

  constructor(redacting: Redacting) {
    this.#redacting = redacting
  }

  *redact(events: readonly AnswerEvent[]): Steps<AnswerEvent[]> {
    const redacted: AnswerEvent[] = []
    for (const event of events) redacted.push(...(yield* this.#redactEvent(event)))
    return redacted
  }

  *#redactEvent(event: AnswerEvent): Steps<AnswerEvent[]> {
    switch (event.type) {
      case 'block_started':
        this.#blocks.set(event.index, this.#openBlock(event.block))
        return [event]
      case 'block_delta':
        return yield* this.#addDelta(event)
      case 'block_sealed':
        return [...(yield* this.#closeBlock(event.index, true)), event]
      case 'block_ended':
        return [...(yield* this.#closeBlock(event.index, false)), event]
      case 'started':
      case 'finished':
        return [event]
    }
  }

  #openBlock({ type }: Block): OpenBlock {
    const { placeholders, passed } = this.#redacting
    if (type === 'tool_call') return { kind: 'arguments', counter: new ArgumentsCounter(passed) }
    if (type === 'reasoning') return { kind: 'reasoning', text: '' }
    return { kind: 'text', redactor: new TextRedactor(placeholders) }
  }

  *#addDelta(event: AnswerEvent & { type: 'block_delta' }): Steps<AnswerEvent[]> {
    const { index, text } = event
    const block = this.#blocks.get(index)
    switch (block?.kind) {
      case 'text':
        return deltaOf(index, yield* pushInSteps(block.redactor, text))
      case 'reasoning':
        if (block.text.length <= reasoningMost) block.text += text
        return []
      case 'arguments':
        yield* addArguments(block.counter, text)
        return [event]
      case undefined:
        return []
    }
  }

  *#closeBlock(index: number, isSealed: boolean): Steps<AnswerEvent[]> {
    const block = this.#blocks.get(index)
    this.#blocks.delete(index)
    switch (block?.kind) {
      case 'text':
        return deltaOf(index, block.redactor.end())
      case 'reasoning':
        return deltaOf(index, yield* this.#releaseReasoning(block.text, isSealed))
      case 'arguments':
        block.counter.end()
        return []
      case undefined:
        return []
    }
  }

  *#releaseReasoning(text: string, isSealed: boolean): Steps<string> {
    const { placeholders, withheld } = this.#redacting
    if (text.length > reasoningMost) return ''
    if (!isSealed) return yield* redactInSteps(text, placeholders)
    const found = yield* countEntities(text)
    addCounts(withheld, found)
    return found.size > 0 ? '' : text
  }
}

const deltaOf = (index: number, text: string): AnswerEvent[] =>
  text === '' ? [] : [{ type: 'block_delta', index, text }]

/**
 * The pieces of an answer with what was redacted. They have nothing left to be passed on as it came. Those without anything to
 * write yet are kept back, so that callers of a silent stream are still told that it goes on.
 */
export async function* redactPieces(
  pieces: AsyncIterable<Piece>,
  redacting: Redacting,
  asker: Asker,
): AsyncGenerator<Piece> {
  const redactor = new AnswerRedactor(redacting)
  for await (const { format, frames } of pieces) {
    const rewritten: Frame[] = []
    for (const { events, source } of frames) {
      const redacted = runInTurns(redactor.redact(events), asker)
      const left = redacted instanceof Promise ? await redacted : redacted
      if (left.length > 0) rewritten.push({ events: left, source })
    }
    if (rewritten.length > 0) yield { format, frames: rewritten, isRebuilt: true }
  }
}
