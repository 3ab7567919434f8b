import { Normaliser } from './normalise.ts'

/** How much of a text is normalised in one step. One character can become eighteen. */
const pieceLength = 8 * 1024

/** Normalises a text in pieces, none of which ends inside of a character. */
export function* normalisedPieces(text: string): Generator<string, void, void> {
  const normaliser = new Normaliser()
  for (let start = 0; start < text.length; start += pieceLength) {
    yield normaliser.push(text.slice(start, start + pieceLength))
    normaliser.forget(normaliser.length)
  }
  yield normaliser.end()
}
