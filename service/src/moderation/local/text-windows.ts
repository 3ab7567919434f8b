import { Normaliser } from '#text/normalise.ts'

/** As long as the longest ordinary texts of the training. In longer windows a short passage would hardly count. */
export const windowLength = 2_000
/** What stands at the end of a window is seen again in the next, so that nothing is cut in two unseen. */
const overlap = 200
/** How much of the text each window adds to those before it. */
export const windowStep = windowLength - overlap
/** A piece is normalised at once. One character becomes eighteen at most. */
const pieceLength = 512

/**
 * A text in normalised windows, in lower case: for each piece of the text those that it completes, which may be none. So the work
 * between two pieces is bounded, whatever the text is.
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
