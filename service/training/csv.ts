const quote = '"'

/** Reads a table whose first line has the names of its columns: quoted fields, doubled quotes, line breaks in quotes. */
export function parseCsv(source: string): Record<string, string>[] {
  const [header = [], ...rows] = readRows(source)
  return rows
    .filter((row) => row.length === header.length)
    .map((row) => Object.fromEntries(header.map((name, index) => [name, row[index] ?? ''])))
}

function readRows(source: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let at = 0
  while (at < source.length) {
    const { field, end } = readField(source, at)
    row.push(field)
    if (source[end] !== ',') {
      rows.push(row)
      row = []
    }
    at = end + 1
  }
  if (row.length > 0) rows.push([...row, ''])
  return rows
}

/** The field that starts at a position, and where the comma or line break after it is. */
function readField(source: string, start: number): { field: string; end: number } {
  let field = ''
  let isQuoted = false
  let at = start
  for (; at < source.length; at++) {
    const character = source[at] ?? ''
    if (isQuoted && character === quote && source[at + 1] === quote) {
      field += quote
      at++
    } else if (character === quote) isQuoted = !isQuoted
    else if (!isQuoted && (character === ',' || character === '\n')) break
    else if (isQuoted || character !== '\r') field += character
  }
  return { field, end: at }
}
