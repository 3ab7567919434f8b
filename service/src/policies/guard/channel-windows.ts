import { WindowCutter } from '#text/windows/window-cutter.ts'

import type { Place } from './atom-starts.ts'
import { isUnjudged, type WindowQueue, type WindowVerdict } from './window-queue.ts'

/** What the windows of a channel need of its reader. */
type WindowedText = {
  readonly channel: string
  /** Of an index of the normalised text. */
  placeOf(index: number): Place
  /** In the original text. */
  offsetOf(index: number): number
  /** A window that starts there hits these atoms. */
  onHits(atoms: readonly number[], start: Place): void
  /** The window that starts there has no verdict, and will have none. */
  onUnjudged(start: Place): void
  /** A verdict that was waited for has come. */
  onVerdict(): void
}

/** The windows of one channel for one scorer. */
export class ChannelWindows {
  readonly #queue: WindowQueue
  readonly #cutter: WindowCutter
  readonly #text: WindowedText
  /** Those from the first on that has no verdict. */
  readonly #open: { readonly end: number; hasVerdict: boolean }[] = []
  #scoredTo = 0
  #isEnded = false

  constructor(queue: WindowQueue, text: WindowedText) {
    this.#queue = queue
    this.#cutter = new WindowCutter(queue.grid)
    this.#text = text
  }

  /** Before which index every window has its verdict; Infinity when the text is over and all of it has. */
  get scoredTo(): number {
    return this.#isEnded && this.#open.length === 0 ? Infinity : this.#scoredTo
  }

  /** How many characters must come before the next window can be complete. */
  get missing(): number {
    return this.#cutter.missing
  }

  read(piece: string, isEnded: boolean) {
    this.#cutter.add(piece)
    this.#isEnded = isEnded
    const { channel, placeOf, offsetOf, onHits } = this.#text
    for (let cut = this.#cutter.next(isEnded); cut; cut = this.#cutter.next(isEnded)) {
      const { text, isLast } = cut
      const start = placeOf(cut.start)
      const window = { channel, text, start: start.offset, end: offsetOf(cut.end), isLast }
      const known = this.#queue.findKnown(window)
      if (known) onHits(known, start)
      if (known && this.#open.length === 0) {
        this.#scoredTo = cut.end
        continue
      }
      const open = { end: cut.end, hasVerdict: known !== undefined }
      this.#open.push(open)
      if (known) continue
      const onVerdict = (verdict: WindowVerdict) => this.#take(verdict, start, open)
      this.#queue.push({ window, order: start.order, onVerdict })
    }
  }

  #take(verdict: WindowVerdict, start: Place, open: { hasVerdict: boolean }) {
    const { onHits, onUnjudged, onVerdict } = this.#text
    onHits(isUnjudged(verdict) ? verdict.atoms : verdict, start)
    if (isUnjudged(verdict)) return onUnjudged(start)
    open.hasVerdict = true
    this.#pass()
    onVerdict()
  }

  #pass() {
    for (let first = this.#open[0]; first?.hasVerdict; first = this.#open[0]) {
      this.#scoredTo = first.end
      this.#open.shift()
    }
  }
}
