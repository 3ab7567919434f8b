import type { AnswerEvent, Frame, Piece } from '#formats/answer.ts'

import { type Restoring, TextRestorer } from './restore-text.ts'

/** Puts the values of a request back into the events of its answer: into what is said, and into the arguments of calls. */
class AnswerRestorer {
  readonly #restoring: Restoring
  readonly #texts = new Map<number, TextRestorer>()

  constructor(restoring: Restoring) {
    this.#restoring = restoring
  }

  restore(events: readonly AnswerEvent[]): AnswerEvent[] {
    return events.flatMap((event) => this.#restoreEvent(event))
  }

  #restoreEvent(event: AnswerEvent): AnswerEvent[] {
    switch (event.type) {
      case 'block_started':
        // A seal would not match reasoning that was changed, and whether there is a seal is known only at the end.
        if (event.block.type !== 'reasoning') {
          this.#texts.set(event.index, new TextRestorer(this.#restoring))
        }
        return [event]
      case 'block_delta': {
        const text = this.#texts.get(event.index)?.push(event.text) ?? event.text
        return text === '' ? [] : [{ ...event, text }]
      }
      case 'block_ended': {
        const { index } = event
        const rest = this.#texts.get(index)?.end() ?? ''
        this.#texts.delete(index)
        return rest === '' ? [event] : [{ type: 'block_delta', index, text: rest }, event]
      }
      case 'finished':
        return [{ ...event, stopSequence: this.#restoreWhole(event.stopSequence) }]
      case 'started':
      case 'block_sealed':
        return [event]
    }
  }

  /** The caller compares this with what it asked for. */
  #restoreWhole(text: string | null): string | null {
    if (text === null) return null
    const restorer = new TextRestorer({ ...this.#restoring, onRestored: () => undefined })
    return restorer.push(text) + restorer.end()
  }
}

/** The pieces of a redacted answer with the values of its request. */
export async function* restorePieces(
  pieces: AsyncIterable<Piece>,
  restoring: Restoring,
): AsyncGenerator<Piece> {
  const restorer = new AnswerRestorer(restoring)
  for await (const { format, frames } of pieces) {
    const restored: Frame[] = []
    for (const { events, source } of frames) {
      const left = restorer.restore(events)
      if (left.length > 0) restored.push({ events: left, source })
    }
    if (restored.length > 0) yield { format, frames: restored, isRebuilt: true }
  }
}
