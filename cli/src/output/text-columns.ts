/** Unicode code points. */
export const lengthOf = (text: string) => Array.from(text).length

/** Rows of cells as lines, every column as wide as its widest cell. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, lengthOf(cell))))
  }
  return rows.map((row) =>
    row
      .map((cell, index) => padded(cell, widths[index]))
      .join('  ')
      .trimEnd(),
  )
}

const padded = (cell: string, width = 0) => cell + ' '.repeat(width - lengthOf(cell))

/** Breaks a text between words into lines of at most `columns` characters. */
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

/** Names are written by other people: their control characters must not reach the terminal. */
export function withoutControls(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
