const usualWidth = 80
/** Narrower than this, hardly a table has room for a second column. */
const leastWidth = 40

/** The width of the terminal; where it is not known, as in a pipe, that of the variable COLUMNS, or 80. */
export function terminalWidth(columns: number | undefined, variable: string | undefined): number {
  const named = /^\d{1,4}$/.test(variable ?? '') ? Number(variable) : undefined
  return Math.max(leastWidth, columns || named || usualWidth)
}
