import type { AnswerEvent } from '#formats/answer.ts'
import type { Steps } from '#platform/steps/steps.ts'
import type { Placeholders } from '#redaction/placeholders.ts'
import { writePlaceholder } from '#redaction/text-redactor.ts'
import { pushInSteps, ValueFinder } from '#redaction/value-finder.ts'

type Ended = Extract<AnswerEvent, { type: 'block_ended' }>
type RunBlock = { readonly index: number; waiting: string[]; ended: Ended | null }

/**
 * The blocks of one kind of text in an answer. Callers of some formats get these blocks as one string, and clients join them,
 * so they are redacted as one text. Each text leaves in its own block; the placeholder of a value that is divided over two
 * blocks leaves in the first. A block ends for the caller when its text is final, which may be after later blocks have started.
 */
export class TextRun {
  /** The blocks that have not left completely, in the order in which they started. */
  readonly #blocks: RunBlock[] = []
  readonly #finder: ValueFinder
  #left: AnswerEvent[] = []
  /** How many of the blocks have been read to their end. */
  #read = 0

  constructor(placeholders: Placeholders) {
    this.#finder = new ValueFinder({
      text: (text) => this.#write(text),
      value: (found) => this.#write(writePlaceholder(placeholders, found)),
      seam: () => this.#endBlock(),
    })
  }

  start(index: number) {
    this.#blocks.push({ index, waiting: [], ended: null })
  }

  /**
   * Takes more text of a block; returns what is final in all blocks. The text of a later block waits for that of an earlier
   * one.
   */
  *add(index: number, text: string): Steps<AnswerEvent[]> {
    const block = this.#find(index)
    if (block && block === this.#blocks[this.#read]) yield* pushInSteps(this.#finder, text)
    else block?.waiting.push(text)
    return this.#take()
  }

  *end(event: Ended): Steps<AnswerEvent[]> {
    const block = this.#find(event.index)
    if (block) block.ended = event
    for (let next = this.#blocks[this.#read]; next?.ended; next = this.#blocks[this.#read]) {
      this.#read++
      this.#finder.join('part')
      const following = this.#blocks[this.#read]
      for (const text of following?.waiting.splice(0) ?? []) yield* pushInSteps(this.#finder, text)
    }
    return this.#take()
  }

  /** Ends the answer; returns the rest. */
  finish(): AnswerEvent[] {
    this.#finder.end()
    return this.#take()
  }

  #find(index: number): RunBlock | undefined {
    return this.#blocks.find((block) => block.index === index)
  }

  #write(text: string) {
    const [block] = this.#blocks
    if (!block) return
    const last = this.#left.at(-1)
    if (last?.type === 'block_delta' && last.index === block.index) last.text += text
    else this.#left.push({ type: 'block_delta', index: block.index, text })
  }

  #endBlock() {
    const block = this.#blocks.shift()
    if (!block?.ended) return
    this.#read--
    this.#left.push(block.ended)
  }

  #take(): AnswerEvent[] {
    const left = this.#left
    this.#left = []
    return left
  }
}
