import { type AnswerEvent, noUsage, type Piece } from '#formats/answer.ts'

/** Tracks which blocks of an answer have left, so that the answer can be ended with a replacement. */
export class SentBlocks {
  #hasStarted = false
  #isFinished = false
  #next = 0
  readonly #open = new Set<number>()

  note({ frames }: Piece) {
    for (const { events } of frames) for (const event of events) this.#noteEvent(event)
  }

  #noteEvent(event: AnswerEvent) {
    if (event.type === 'started') this.#hasStarted = true
    if (event.type === 'finished') this.#isFinished = true
    if (event.type === 'block_ended') this.#open.delete(event.index)
    if (event.type !== 'block_started') return
    this.#open.add(event.index)
    this.#next = event.index + 1
  }

  /** The answer has already ended, so nothing can follow. */
  get isFinished(): boolean {
    return this.#isFinished
  }

  /** Ends the open blocks and the answer, with this text as its last block. */
  endWith(text: string): Piece {
    const index = this.#next
    const ended = Array.from(this.#open, (open) => ({
      type: 'block_ended' as const,
      index: open,
      isCut: true,
    }))
    return toPiece([
      ...(this.#hasStarted ? [] : [startOf({ isUnread: false })]),
      ...ended,
      ...blockOf(index, text),
      endOfReplaced,
    ])
  }
}

/** An answer that consists of this text alone, to a request that no model has read. */
export const answerWith = (text: string): Piece =>
  toPiece([startOf({ isUnread: true }), ...blockOf(0, text), endOfReplaced])

const blockOf = (index: number, text: string): AnswerEvent[] => [
  { type: 'block_started', index, block: { type: 'text' } },
  { type: 'block_delta', index, text },
  { type: 'block_ended', index },
]

/** Writers have their own ids, and name the model as the caller did. */
const startOf = ({ isUnread }: { isUnread: boolean }): AnswerEvent => ({
  type: 'started',
  id: '',
  model: '',
  usage: noUsage,
  isUnread,
})

/** The usage of what was generated is in the receipt. */
const endOfReplaced: AnswerEvent = {
  type: 'finished',
  reason: 'content_filter',
  stopSequence: null,
  usage: noUsage,
}

/** Made here, and not sent by an upstream. */
const noSource = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }

const toPiece = (events: readonly AnswerEvent[]): Piece => ({
  format: 'none',
  frames: [{ events, source: noSource }],
  isRebuilt: true,
})
