import { windowLengthMost } from '#policies/rules/score.ts'
import { normalise } from '#text/normalise.ts'

import { isLowSurrogate, splitsPairAt } from './arrivals.ts'

/** The first windows are short, so that the first words of an answer are not held for long. */
const firstLengths = [96, 160]
const extensionMost = 32
const usualLength = windowLengthMost - extensionMost
const overlapMost = 128

/** A stretch of normalised text that is scored; `text` also has what stands before it, the overlap. */
export type CutWindow = { text: string; start: number; end: number; isLast: boolean }

/**
 * Cuts a text that grows into windows. They depend on the text alone, never on the pieces in which it came or on time:
 * the same answer is scored the same way however it is sent.
 */
export class WindowCutter {
  /** From the overlap of the next window on. */
  #text = ''
  #overlap = 0
  #start = 0
  #number = 0

  add(piece: string) {
    this.#text += piece
  }

  /** The next window that is complete; null while more text is needed, or when there is none left. */
  next(isEnded: boolean): CutWindow | null {
    const fresh = this.#text.slice(this.#overlap)
    const length = completeLength(fresh, this.#number)
    if (length !== null) return this.#take(length, false)
    return isEnded && fresh !== '' ? this.#take(fresh.length, true) : null
  }

  #take(length: number, isLast: boolean): CutWindow {
    const end = this.#overlap + length
    const text = this.#text.slice(0, end)
    const window = { text, start: this.#start, end: this.#start + length, isLast }
    const kept = Math.max(0, end - overlapMost)
    const overlapStart = isLowSurrogate(text.charCodeAt(kept)) ? kept + 1 : kept
    this.#text = this.#text.slice(overlapStart)
    this.#overlap = end - overlapStart
    this.#start = window.end
    this.#number++
    return window
  }
}

/** How long the window with this number is: up to the next white space, which normalised text writes as one space. */
function completeLength(fresh: string, number: number): number | null {
  const least = firstLengths[number] ?? usualLength
  const most = least + extensionMost
  const space = fresh.slice(0, most).indexOf(' ', least)
  if (space !== -1) return space
  if (fresh.length <= most) return null
  return splitsPairAt(fresh, most) ? most - 1 : most
}

/** The windows in which a complete text is scored. */
export function windowsOf(text: string): string[] {
  const cutter = new WindowCutter()
  cutter.add(normalise(text).text)
  const windows: string[] = []
  for (let window = cutter.next(true); window; window = cutter.next(true)) windows.push(window.text)
  return windows
}
