import { codePoints } from '@gatehouse/contract/text'

/** Rows of cells as lines, every column as wide as its widest cell. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, codePoints(cell))))
  }
  return rows.map((row) =>
    row
      .map((cell, index) => padded(cell, widths[index]))
      .join('  ')
      .trimEnd(),
  )
}

const padded = (cell: string, width = 0) => cell + ' '.repeat(width - codePoints(cell))

/** A text as lines of at most so many columns, broken between words. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    const fits = last !== undefined && last.length + 1 + word.length <= columns
    if (fits) lines.splice(-1, 1, `${last} ${word}`)
    else lines.push(word)
  }
  return lines
}

/** Names come from other people: a terminal must not obey what they typed. */
export function withoutControls(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
