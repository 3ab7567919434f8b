import { isHighSurrogate, isLowSurrogate } from '#text/surrogates.ts'

import { countWhile } from './count-while.ts'

/** A stretch of a channel's text that arrived without a character of another channel in between. */
type Run = {
  readonly offset: number
  readonly order: number
  /** All of it came with that one character of another channel. */
  readonly isFlat?: boolean
  /** The run before ends with the first half of a surrogate pair, and this one begins with the second. */
  readonly splitsPair: boolean
}

/**
 * When the characters of one channel arrived. The order counts the characters of all channels together, so that places
 * in different channels can be compared. An answer that fills one channel after another has one run per channel.
 */
export class Arrivals {
  readonly #runs: Run[] = []
  #length = 0
  #lastUnit = 0

  get length(): number {
    return this.#length
  }

  /** A piece of text arrived; `order` is that of its first character. */
  add(text: string, order: number) {
    if (text === '') return
    const last = this.#runs.at(-1)
    if (!last || last.isFlat || last.order + this.#length - last.offset !== order) {
      const splitsPair = isHighSurrogate(this.#lastUnit) && isLowSurrogate(text.charCodeAt(0))
      this.#runs.push({ offset: this.#length, order, splitsPair })
    }
    this.#length += text.length
    this.#lastUnit = text.charCodeAt(text.length - 1)
  }

  /** Text that is another reading of one character, whose order it has. */
  addFlat(text: string, order: number) {
    if (text === '') return
    this.#runs.push({ offset: this.#length, order, splitsPair: false, isFlat: true })
    this.#length += text.length
    this.#lastUnit = 0
  }

  /** Text that is another reading of as many characters of another channel, from an offset on. */
  addLike(text: string, other: Arrivals, from: number) {
    for (let at = 0; at < text.length;) {
      const end = other.#endOfRun(from + at) - from
      // An upstream has repeated a text with other white space around it, so that its reading is ahead of it.
      if (end <= at) return
      this.add(text.slice(at, end), other.orderAt(from + at))
      at = end
    }
  }

  /** Where the run ends that a character belongs to. */
  #endOfRun(offset: number): number {
    const next = this.#runs[countWhile(this.#runs, (candidate) => candidate.offset <= offset)]
    return next?.offset ?? this.#length
  }

  /** The order of a character that has arrived and was not forgotten. */
  orderAt(offset: number): number {
    const run = this.#runs[countWhile(this.#runs, (candidate) => candidate.offset <= offset) - 1]
    if (!run) throw new Error('The arrival of this character was forgotten.')
    return run.isFlat ? run.order : run.order + offset - run.offset
  }

  /** The character that arrived with this order; null where it is one of another channel, or forgotten. */
  offsetAt(order: number): number | null {
    const count = countWhile(this.#runs, (candidate) => candidate.order <= order)
    const run = this.#runs[count - 1]
    if (!run) return null
    const offset = run.offset + order - run.order
    return offset < (this.#runs[count]?.offset ?? this.#length) ? offset : null
  }

  /** How many characters, from the start of the channel on, arrived before `order`. Never splits a surrogate pair. */
  countBefore(order: number): number {
    const count = countWhile(this.#runs, (candidate) => candidate.order < order)
    const run = this.#runs[count - 1]
    const next = this.#runs[count]
    const end = next?.offset ?? this.#length
    const before = run && !run.isFlat ? Math.min(run.offset + order - run.order, end) : end
    return next?.splitsPair && before === end ? before - 1 : before
  }

  /** The characters before `offset` will not be asked for any more. */
  forget(offset: number) {
    const begun = countWhile(this.#runs, (run) => run.offset <= offset)
    // The last of them may still be asked for.
    if (begun > 1) this.#runs.splice(0, begun - 1)
  }
}
