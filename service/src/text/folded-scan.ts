import type { LiteralScan, LiteralSet } from './literal-set.ts'

/** Both cases, one after the other, because some letters have only one of them: ß and ẞ become SS. */
export const foldCases = (text: string): string => text.toLowerCase().toUpperCase()

/** A character that became longer by folding: where it is in the text, and where what it became is in the folded one. */
type Grown = { at: number; units: number; foldedAt: number; foldedUnits: number }

/**
 * Scans a text for literals that were folded, whatever its case. The positions it tells are those of the text. No piece may end
 * inside of a character.
 */
export function scanFolded(literals: LiteralSet): LiteralScan {
  const scan = literals.scan()
  let grown: Grown[] = []
  let before: Grown = { at: 0, units: 0, foldedAt: 0, foldedUnits: 0 }
  let [length, foldedLength] = [0, 0]

  /** No character becomes shorter, so one that became longer shows in the length. */
  function noteGrown(piece: string) {
    let [at, foldedAt] = [length, foldedLength]
    for (const character of piece) {
      const [units, foldedUnits] = [character.length, foldCases(character).length]
      if (foldedUnits > units) grown.push({ at, units, foldedAt, foldedUnits })
      at += units
      foldedAt += foldedUnits
    }
  }

  /** Forgets characters in which no literal can begin that is still to end. */
  function forget() {
    const kept = grown.findIndex(
      ({ foldedAt, foldedUnits }) => foldedAt + foldedUnits > foldedLength - literals.longest,
    )
    const count = kept === -1 ? grown.length : kept
    before = grown[count - 1] ?? before
    grown = grown.slice(count)
  }

  function positionOf(foldedStart: number): number {
    const { at, units, foldedAt, foldedUnits } =
      grown.findLast((each) => each.foldedAt <= foldedStart) ?? before
    const beyond = foldedStart - foldedAt - foldedUnits
    return beyond < 0 ? at : at + units + beyond
  }

  return {
    read(piece, onHit) {
      const folded = foldCases(piece)
      if (folded.length !== piece.length) noteGrown(piece)
      scan.read(folded, (literal, start) => onHit(literal, positionOf(start)))
      length += piece.length
      foldedLength += folded.length
      if (grown.length > 0) forget()
    },
    /** At least as many as of the text. */
    get held() {
      return scan.held
    },
  }
}
