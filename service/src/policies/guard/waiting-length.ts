import { countWhile } from './count-while.ts'

/** A piece of a channel's text: where it ends in the original, and how many characters of it rules see at most. */
type Piece = { end: number; readonly seen: number }

/**
 * How much of a channel waits, in characters that rules see: a run of white space counts as one, and what is removed does not
 * count. So an answer does not reach a limit by characters that rules never hold back.
 */
export class WaitingLength {
  #pieces: Piece[] = []
  #end = 0
  #seen = 0

  /** `normalised` is the length that the piece adds to the normalised text. Characters that become longer count once. */
  add(length: number, normalised: number) {
    const seen = Math.min(length, normalised)
    this.#end += length
    this.#seen += seen
    const last = this.#pieces.at(-1)
    if (seen === 0 && last) last.end = this.#end
    else this.#pieces.push({ end: this.#end, seen })
  }

  /** The length of what waits from `offset` of the original on. What stands before is never asked for again. */
  from(offset: number): number {
    const passed = countWhile(this.#pieces, ({ end }) => end <= offset)
    if (passed > 0) {
      for (const { seen } of this.#pieces.splice(0, passed)) this.#seen -= seen
    }
    const [first] = this.#pieces
    if (!first) return 0
    // Of a piece that has passed in part no more waits than is left of it.
    return this.#seen - first.seen + Math.min(first.seen, first.end - offset)
  }
}
