import { Normaliser } from '#text/normalise.ts'

/** As long as the longest ordinary texts of the training data. In longer windows a short passage would hardly count. */
export const windowLength = 2_000
/** The end of a window is repeated in the next, so that no passage is divided without being seen whole. */
const overlap = 200
/** How much of the text each window adds to those before it. */
export const windowStep = windowLength - overlap
/** A piece is normalised in one go. One character becomes eighteen at most. */
const pieceLength = 512

/**
 * Splits a text into normalised windows in lower case. For each piece of the text it yields the windows that the piece
 * completes, which may be none, so that the work between two pieces is bounded.
 */
export function* scoredWindowsOf(text: string): Generator<readonly string[], void> {
  const normaliser = new Normaliser()
  let waiting = ''
  for (let at = 0; at < text.length; at += pieceLength) {
    waiting += normaliser.push(text.slice(at, at + pieceLength)).toLowerCase()
    normaliser.forget(normaliser.length)
    const windows: string[] = []
    while (waiting.length > windowLength) {
      windows.push(waiting.slice(0, windowLength))
      waiting = waiting.slice(windowStep)
    }
    yield windows
  }
  yield [waiting + normaliser.end().toLowerCase()]
}
