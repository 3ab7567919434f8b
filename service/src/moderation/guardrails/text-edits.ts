/** A stretch of a text and what takes its place. The offsets count UTF-16 units, as strings of JavaScript do. */
export type TextEdit = {
  readonly start: number
  readonly end: number
  readonly replacement: string
}

/** The same edits with offsets that count code points. */
export type CodePointEdit = TextEdit

/**
 * Edits in the order of the text, with offsets in UTF-16 units. Null unless all of them lie inside the text, hold at least one
 * code point, and have no character in common. A lone surrogate is a code point of its own.
 */
export function toTextEdits(
  text: string,
  edits: readonly CodePointEdit[],
): readonly TextEdit[] | null {
  const sorted = edits.toSorted((one, other) => one.start - other.start)
  const walk = new CodePointWalk(text)
  const found: TextEdit[] = []
  for (const { start, end, replacement } of sorted) {
    if (end <= start) return null
    const from = walk.goTo(start)
    const to = from === null ? null : walk.goTo(end)
    if (from === null || to === null) return null
    found.push({ start: from, end: to, replacement })
  }
  return found
}

/** Finds code points in a text, each behind the one before. */
class CodePointWalk {
  readonly #text: string
  #at = 0
  #passed = 0

  constructor(text: string) {
    this.#text = text
  }

  /** The offset in UTF-16 units; null where that place was passed already, or the text is shorter. */
  goTo(codePoints: number): number | null {
    if (codePoints < this.#passed) return null
    while (this.#passed < codePoints) {
      const codePoint = this.#text.codePointAt(this.#at)
      if (codePoint === undefined) return null
      this.#at += codePoint > 0xffff ? 2 : 1
      this.#passed++
    }
    return this.#at
  }
}

/** The text with its edits, which are in its order. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  let written = ''
  let at = 0
  for (const { start, end, replacement } of edits) {
    written += text.slice(at, start) + replacement
    at = end
  }
  return written + text.slice(at)
}
