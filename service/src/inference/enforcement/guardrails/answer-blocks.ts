import type { AnswerEvent } from '#formats/answer.ts'

import { AnswerBlock } from './answer-block.ts'
import type { AnswerWindow } from './answer-windows.ts'

type OnWindow = (block: AnswerBlock, window: AnswerWindow) => void

/** The blocks of an answer, from its events. It reports each window that guardrails are to be asked about, in the order of their ends. */
export class AnswerBlocks {
  readonly #onWindow: OnWindow
  readonly #open = new Map<number, AnswerBlock>()
  /** The last of each kind: what its reader sees before the next one. */
  readonly #last = new Map<AnswerBlock['type'], AnswerBlock>()
  readonly #prefill: string

  /** `prefill`: the beginning of the answer, where the caller has written it. */
  constructor(prefill: string, onWindow: OnWindow) {
    this.#prefill = prefill
    this.#onWindow = onWindow
  }

  /** Reads an event; returns the block whose text it has, or has ended. */
  read(event: AnswerEvent): AnswerBlock | null {
    switch (event.type) {
      case 'block_started':
        this.#start(event.index, event.block.type)
        return null
      case 'block_delta':
        return this.#change(event.index, (block) => block.add(event.text))
      case 'block_sealed':
        return this.#change(event.index, (block) => block.end({ isSealed: true }))
      case 'block_ended': {
        const block = this.#change(event.index, (ended) => ended.end())
        this.#open.delete(event.index)
        return block
      }
      case 'started':
      case 'finished':
        return null
    }
  }

  /** The answer is over, wherever its blocks are. */
  end() {
    for (const index of this.#open.keys()) this.#change(index, (block) => block.end())
    this.#open.clear()
  }

  #start(index: number, type: AnswerBlock['type']) {
    const isProse = type === 'text' || type === 'refusal'
    const first = type === 'text' ? this.#prefill : null
    const block = new AnswerBlock(type, isProse ? (this.#last.get(type) ?? first) : null)
    this.#last.set(type, block)
    this.#open.set(index, block)
  }

  #change(index: number, change: (block: AnswerBlock) => void): AnswerBlock | null {
    const block = this.#open.get(index)
    if (!block) return null
    change(block)
    for (let window = block.nextWindow(); window; window = block.nextWindow())
      this.#onWindow(block, window)
    return block
  }
}
