import { lengthOf } from './text-columns.ts'

export type Column = {
  head: string
  cells: readonly string[]
  /** Text that says something even when its end is missing. Ids, numbers and times are never cut. */
  canBeCut: boolean
}

const gap = 2
/** A text is cut at this length even where there is room: a rule may have 20,000 characters. */
const cutMax = 48
/** Shorter than this a text says nothing: the column is left out instead. */
const cutMin = 12

/** The rows of a table that is at most `width` characters wide, and the heads of the columns that it has no room for. */
export function fitTable(columns: readonly Column[], width: number) {
  const shown: Column[] = []
  const left: string[] = []
  let room = width
  for (const column of columns) {
    const least = leastWidth(column) + (shown.length > 0 ? gap : 0)
    // A table without its first column would not say what its rows are about.
    if (least > room && shown.length > 0) {
      left.push(column.head)
    } else {
      shown.push(column)
      room -= least
    }
  }
  return { rows: rowsOf(widened(shown, Math.max(0, room))), left }
}

const fullWidth = ({ head, cells }: Column) => Math.max(...[head, ...cells].map(lengthOf))
const widthOf = (column: Column) =>
  column.canBeCut
    ? Math.max(lengthOf(column.head), Math.min(fullWidth(column), cutMax))
    : fullWidth(column)
const leastWidth = (column: Column) =>
  column.canBeCut
    ? Math.max(lengthOf(column.head), Math.min(fullWidth(column), cutMin))
    : fullWidth(column)

/** Gives the room that is left to the columns that are cut, the first ones first. */
function widened(columns: readonly Column[], room: number): [column: Column, width: number][] {
  let rest = room
  return columns.map((column) => {
    const more = Math.min(rest, widthOf(column) - leastWidth(column))
    rest -= more
    return [column, leastWidth(column) + more]
  })
}

function rowsOf(columns: readonly [column: Column, width: number][]): string[][] {
  const count = columns[0]?.[0].cells.length ?? 0
  const indexes = Array.from({ length: count }, (_, index) => index)
  return [
    columns.map(([{ head }]) => head),
    ...indexes.map((index) =>
      columns.map(([column, width]) => cut(column.cells[index] ?? '', width)),
    ),
  ]
}

const cut = (text: string, width: number) =>
  lengthOf(text) <= width
    ? text
    : `${Array.from(text)
        .slice(0, width - 1)
        .join('')}…`
