/** Aligns the columns of a table: the first to the left, the others to the right. */
export function toTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const cells of rows) {
    for (const [index, cell] of cells.entries()) {
      widths[index] = Math.max(widths[index] ?? 0, cell.length)
    }
  }
  const toLine = (cells: readonly string[]) =>
    cells.map((cell, index) => {
      const width = widths[index] ?? 0
      return index === 0 ? cell.padEnd(width) : cell.padStart(width + 2)
    })
  return rows.map((cells) => toLine(cells).join('').trimEnd()).join('\n')
}

/** The same as a table of Markdown, with columns that also line up in a terminal. */
export function toMarkdown(rows: readonly (readonly string[])[]): string {
  const [heading = [], ...others] = rows
  const widths = heading.map((_, index) =>
    Math.max(3, ...rows.map((cells) => cells[index]?.length ?? 0)),
  )
  const toLine = (cells: readonly string[]) =>
    `| ${widths.map((width, index) => (cells[index] ?? '').padEnd(width)).join(' | ')} |`
  const rule = toLine(widths.map((width) => '-'.repeat(width)))
  return [toLine(heading), rule, ...others.map(toLine)].join('\n')
}
