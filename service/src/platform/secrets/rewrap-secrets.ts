import type { SecretBox } from '#platform/secrets.ts'

/** A column with sealed values. */
type SealedColumn<Row extends { id: string }> = {
  /** Rows of all organizations, in the order of their ids. */
  list(after: string, limit: number): Promise<Row[]>
  sealedIn(row: Row): Buffer
  /** What the value was sealed for. */
  contextOf(row: Row): string
  /** False if another value was saved meanwhile, which is sealed with the current key already. */
  replace(row: Row, sealed: Buffer): Promise<boolean>
}

export type RewrapReport = {
  found: number
  rewrapped: number
  /** The ids of rows whose value no master key opens. */
  unreadable: string[]
}

const batchSize = 100

/** Seals the values of a column with the current master key. Repeating it changes nothing. */
export async function rewrapColumn<Row extends { id: string }>(
  column: SealedColumn<Row>,
  secretBox: SecretBox,
): Promise<RewrapReport> {
  const report: RewrapReport = { found: 0, rewrapped: 0, unreadable: [] }
  for (let after = ''; ;) {
    const batch = await column.list(after, batchSize)
    for (const row of batch) {
      report.found++
      const result = await rewrap(row, column, secretBox)
      if (result === 'rewrapped') report.rewrapped++
      if (result === 'unreadable') report.unreadable.push(row.id)
    }
    const last = batch.at(-1)
    if (!last || batch.length < batchSize) return report
    after = last.id
  }
}

async function rewrap<Row extends { id: string }>(
  row: Row,
  { sealedIn, contextOf, replace }: SealedColumn<Row>,
  secretBox: SecretBox,
) {
  const [sealed, context] = [sealedIn(row), contextOf(row)]
  if (secretBox.isCurrent(sealed)) return 'current'
  const opened = tryOpen(secretBox, sealed, context)
  if (!opened) return 'unreadable'
  const isReplaced = await replace(row, secretBox.seal(opened, context))
  return isReplaced ? 'rewrapped' : 'current'
}

function tryOpen(secretBox: SecretBox, sealed: Buffer, context: string): Buffer | undefined {
  try {
    return secretBox.open(sealed, context)
  } catch {
    return undefined
  }
}
