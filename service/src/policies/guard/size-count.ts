import type { Arrivals } from './arrivals.ts'
import type { AtomStarts, Place } from './atom-starts.ts'
import type { ChannelReader } from './channel-reader.ts'
import { countWhile } from './count-while.ts'

/** What the count needs of a channel. */
type CountedChannel = {
  readonly name: string
  /** Other readings have no size. */
  readonly isView: boolean
  readonly arrivals: Pick<Arrivals, 'offsetAt'>
  readonly reader: Pick<ChannelReader, 'codePointsBefore' | 'takeCodePoints'> | null
}

/**
 * Counts the code points of all channels in the order in which they arrived, and records where the sizes that rules
 * ask for are reached. Only decided characters are counted: before that, an earlier one of another channel may be missing.
 */
export class SizeCount {
  readonly #starts: AtomStarts
  /** Those that are not reached, the smallest first. */
  readonly #sizes: number[]
  readonly #isAsked: boolean
  #counted = 0
  #countedTo = 0

  constructor(sizes: Iterable<number>, starts: AtomStarts) {
    this.#sizes = [...sizes].toSorted((a, b) => a - b)
    this.#isAsked = this.#sizes.length > 0
    this.#starts = starts
  }

  /** Everything that arrived before `order` is decided. `channels` are those with characters that are not counted. */
  advance(order: number, channels: Iterable<CountedChannel>) {
    if (!this.#isAsked) return
    if (this.#countedTo >= order) return
    this.#countTo(
      order,
      [...channels].filter(({ isView }) => !isView),
    )
  }

  #countTo(order: number, open: readonly CountedChannel[]) {
    const count = (before: number) =>
      open.reduce((sum, { reader }) => sum + (reader?.codePointsBefore(before) ?? 0), 0)
    const total = this.#counted + count(order)
    const reachedCount = countWhile(this.#sizes, (size) => size <= total)
    for (const size of this.#sizes.splice(0, reachedCount)) {
      const reached = this.#firstOrder(order, (before) => this.#counted + count(before) >= size)
      this.#starts.record('size', size, placeAt(reached, open))
    }
    for (const { reader } of open) reader?.takeCodePoints(order)
    this.#counted = total
    this.#countedTo = order
  }

  /** The order of the character with which `isReached` becomes true; it is true with all before `end`. */
  #firstOrder(end: number, isReached: (before: number) => boolean): number {
    let low = this.#countedTo
    let high = end
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (isReached(middle + 1)) high = middle
      else low = middle + 1
    }
    return low
  }
}

function placeAt(order: number, channels: readonly CountedChannel[]): Place {
  for (const { name, arrivals } of channels) {
    const offset = arrivals.offsetAt(order)
    if (offset !== null) return { order, channel: name, offset }
  }
  throw new Error('A character was counted that has no place.')
}
