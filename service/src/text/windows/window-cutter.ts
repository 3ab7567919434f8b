import { Normaliser } from '#text/normalise.ts'
import { isLowSurrogate, splitsPairAt } from '#text/surrogates.ts'

import { extensionMost, type WindowGrid } from './window-grid.ts'

/** A stretch of normalised text that is scored; `text` also has what stands before it, the overlap. */
export type CutWindow = { text: string; start: number; end: number; isLast: boolean }

/**
 * Cuts a text that grows into the windows of a grid. They depend on the text alone, never on the pieces in which it came or on
 * time: the same answer is scored the same way however it is sent.
 */
export class WindowCutter {
  readonly #grid: WindowGrid
  /** From the overlap of the next window on. */
  #text = ''
  #overlap = 0
  #start = 0
  #number = 0

  constructor(grid: WindowGrid) {
    this.#grid = grid
  }

  add(piece: string) {
    this.#text += piece
  }

  /** How many characters must come at least before the next window is complete. */
  get missing(): number {
    return Math.max(1, this.#overlap + this.#step + 1 - this.#text.length)
  }

  /** The next window that is complete; null while more text is needed, or when there is none left. */
  next(isEnded: boolean): CutWindow | null {
    const length = this.#completeLength()
    if (length !== null) return this.#take(length, false)
    const rest = this.#text.length - this.#overlap
    return isEnded && rest > 0 ? this.#take(rest, true) : null
  }

  get #step(): number {
    const { steps } = this.#grid
    return steps[Math.min(this.#number, steps.length - 1)] ?? 0
  }

  /** How many new characters the next window has: up to the next white space, which normalised text writes as one space. */
  #completeLength(): number | null {
    const least = this.#overlap + this.#step
    if (this.#text.length <= least) return null
    const most = least + extensionMost
    const space = this.#text.indexOf(' ', least)
    if (space !== -1 && space < most) return space - this.#overlap
    if (this.#text.length <= most) return null
    return (splitsPairAt(this.#text, most) ? most - 1 : most) - this.#overlap
  }

  #take(length: number, isLast: boolean): CutWindow {
    const end = this.#overlap + length
    const text = this.#text.slice(0, end)
    const window = { text, start: this.#start, end: this.#start + length, isLast }
    const kept = Math.max(0, end - this.#grid.overlap)
    const overlapStart = isLowSurrogate(text.charCodeAt(kept)) ? kept + 1 : kept
    this.#text = this.#text.slice(overlapStart)
    this.#overlap = end - overlapStart
    this.#start = window.end
    this.#number++
    return window
  }
}

/** The windows in which a complete text that is normalised is scored. */
export function cutAll(normalised: string, grid: WindowGrid): CutWindow[] {
  const cutter = new WindowCutter(grid)
  cutter.add(normalised)
  const windows: CutWindow[] = []
  for (let next = cutter.next(true); next; next = cutter.next(true)) windows.push(next)
  return windows
}

/** A piece of a text is normalised at once. One character becomes eighteen at most. */
const pieceLength = 512

/** The windows of a complete text as it was sent, a few at a time, so that the work between two of them is bounded. */
export function* windowsOf(text: string, grid: WindowGrid): Generator<readonly CutWindow[], void> {
  const normaliser = new Normaliser()
  const cutter = new WindowCutter(grid)
  const takeComplete = (isEnded: boolean) => {
    const windows: CutWindow[] = []
    for (let next = cutter.next(isEnded); next; next = cutter.next(isEnded)) windows.push(next)
    return windows
  }
  for (let at = 0; at < text.length; at += pieceLength) {
    cutter.add(normaliser.push(text.slice(at, at + pieceLength)))
    normaliser.forget(normaliser.length)
    yield takeComplete(false)
  }
  cutter.add(normaliser.end())
  yield takeComplete(true)
}
