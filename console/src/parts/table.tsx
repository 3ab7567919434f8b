import type { Key, ReactNode } from 'react'

export type Column<Row> = {
  head: string
  cell: (row: Row) => ReactNode
  /** The name of the row. */
  isMain?: boolean
  /** Buttons, whose column needs no visible name. */
  isActions?: boolean
}

type TableProps<Row> = {
  caption: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => Key
}

/** A table, whose rows are cards on a phone: each cell then says what it is. */
export function Table<Row>({ caption, columns, rows, keyOf }: TableProps<Row>) {
  return (
    <table className="rows">
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ head, isActions = false }) => (
            <th key={head} scope="col" className={isActions ? 'end' : undefined}>
              {isActions ? <span className="visually-hidden">{head}</span> : head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column) => (
              <Cell key={column.head} column={column} row={row} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Cell<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  const { head, cell, isMain = false, isActions = false } = column
  if (isMain) return <th scope="row">{cell(row)}</th>
  return (
    <td className={isActions ? 'end' : undefined} data-label={isActions ? undefined : head}>
      {cell(row)}
    </td>
  )
}
