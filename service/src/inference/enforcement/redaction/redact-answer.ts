import type { AnswerEvent, Block, Frame, Piece } from '#formats/answer.ts'
import { type Asker, runInTurns, type Steps } from '#platform/steps/steps.ts'
import { addCounts, countEntities } from '#redaction/entity-counts.ts'
import type { EntityKind } from '#redaction/entity.ts'
import type { Placeholders } from '#redaction/placeholders.ts'

import { countArguments, ArgumentsCounter } from './arguments-counter.ts'
import { TextRun } from './text-run.ts'

/** Longer reasoning is withheld. */
const reasoningMost = 1024 * 1024

type OpenBlock =
  | { kind: 'text'; run: TextRun }
  /**
   * The reasoning is kept until its end, when it is known whether it is sealed. Sealed reasoning is sent unchanged or not at
   * all.
   */
  | { kind: 'reasoning'; text: string }
  | { kind: 'arguments'; counter: ArgumentsCounter }

/** Collects what was found. */
export type Redacting = {
  placeholders: Placeholders
  withheld: Map<EntityKind, number>
  passed: Map<EntityKind, number>
}

/**
 * Replaces personal data and secrets in the events of one answer, before they are written in the caller's format. Text leaves
 * as soon as it is final. The arguments of tool calls pass unchanged, because a changed argument would be a wrong action.
 */
export class AnswerRedactor {
  readonly #redacting: Redacting
  readonly #blocks = new Map<number, OpenBlock>()
  readonly #runs: Readonly<Record<'text' | 'refusal', TextRun>>
  /** Consecutive blocks of reasoning. Callers show no other text before the reasoning has ended. */
  #reasoning: TextRun

  constructor(redacting: Redacting) {
    this.#redacting = redacting
    const { placeholders } = redacting
    this.#runs = { text: new TextRun(placeholders), refusal: new TextRun(placeholders) }
    this.#reasoning = new TextRun(placeholders)
  }

  *redact(events: readonly AnswerEvent[]): Steps<AnswerEvent[]> {
    const redacted: AnswerEvent[] = []
    for (const event of events) redacted.push(...(yield* this.#redactEvent(event)))
    return redacted
  }

  *#redactEvent(event: AnswerEvent): Steps<AnswerEvent[]> {
    switch (event.type) {
      case 'block_started': {
        const isReasoning = event.block.type === 'reasoning'
        this.#blocks.set(event.index, this.#openBlock(event.index, event.block))
        return isReasoning ? [event] : [...this.#endReasoning(), event]
      }
      case 'block_delta':
        return yield* this.#addDelta(event)
      case 'block_sealed':
        return [...(yield* this.#releaseSealed(event.index)), event]
      case 'block_ended':
        return yield* this.#endBlock(event)
      case 'started':
        return [event]
      case 'finished':
        return [
          ...this.#endReasoning(),
          ...this.#runs.text.finish(),
          ...this.#runs.refusal.finish(),
          event,
        ]
    }
  }

  #openBlock(index: number, { type }: Block): OpenBlock {
    const { passed } = this.#redacting
    if (type === 'tool_call') return { kind: 'arguments', counter: new ArgumentsCounter(passed) }
    if (type === 'reasoning') return { kind: 'reasoning', text: '' }
    const run = this.#runs[type]
    run.start(index)
    return { kind: 'text', run }
  }

  *#addDelta(event: AnswerEvent & { type: 'block_delta' }): Steps<AnswerEvent[]> {
    const { index, text } = event
    const block = this.#blocks.get(index)
    switch (block?.kind) {
      case 'text':
        return yield* block.run.add(index, text)
      case 'reasoning':
        if (block.text.length <= reasoningMost) block.text += text
        return []
      case 'arguments':
        yield* countArguments(block.counter, text)
        return [event]
      case undefined:
        return []
    }
  }

  *#endBlock(event: AnswerEvent & { type: 'block_ended' }): Steps<AnswerEvent[]> {
    const { index } = event
    const block = this.#blocks.get(index)
    this.#blocks.delete(index)
    switch (block?.kind) {
      case 'text':
        return yield* block.run.end(event)
      case 'reasoning':
        return yield* this.#redactReasoning(block.text, event)
      case 'arguments':
        block.counter.end()
        return [event]
      case undefined:
        return [event]
    }
  }

  /** Reasoning without a seal is redacted like any other text. */
  *#redactReasoning(text: string, event: AnswerEvent & { type: 'block_ended' }) {
    const run = this.#reasoning
    run.start(event.index)
    const left = yield* run.add(event.index, text.length > reasoningMost ? '' : text)
    return [...left, ...(yield* run.end(event))]
  }

  #endReasoning(): AnswerEvent[] {
    const left = this.#reasoning.finish()
    this.#reasoning = new TextRun(this.#redacting.placeholders)
    return left
  }

  *#releaseSealed(index: number): Steps<AnswerEvent[]> {
    const block = this.#blocks.get(index)
    this.#blocks.delete(index)
    if (block?.kind !== 'reasoning' || block.text.length > reasoningMost) return []
    const found = yield* countEntities(block.text)
    addCounts(this.#redacting.withheld, found)
    return found.size > 0 ? [] : deltaOf(index, block.text)
  }
}

const deltaOf = (index: number, text: string): AnswerEvent[] =>
  text === '' ? [] : [{ type: 'block_delta', index, text }]

/**
 * The redacted pieces of an answer. None of their frames can be passed on byte for byte. Pieces without anything to write are
 * still yielded, so that the caller of a silent stream learns that it goes on.
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
