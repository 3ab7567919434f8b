import type { AnswerEvent } from '#formats/answer.ts'

import { type Restoring, TextRestorer } from './restore-text.ts'

/** Restores the values of a request in the events of its answer: in its texts, and in the arguments of tool calls. */
export class AnswerRestorer {
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
