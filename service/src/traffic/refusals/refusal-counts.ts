/** Who was refused, and by what. An empty text: none that is known. */
export type Unrecorded = {
  organizationId: string
  projectId: string
  keyId: string
  scope: string
  metric: string
}

export type RefusalCount = Unrecorded & { count: number; lastAt: Date }

/** How many rows a process writes in a minute, at most. */
export const refusalRowsMax = 1000
/** The last rows are for what has no row of its own: one for each organization, and then one for all. */
const ownRowsMax = 900
/** One organization does not take the rows of the others. */
const rowsOfOneMax = 200

/** In the place of a key: all that had no room. No id is this. */
export const otherKeys = '*'

/** Adds up refusals in a bounded memory: however many callers are refused, there are at most `refusalRowsMax` rows. */
export function createUnrecordedCounts(operatorId: string) {
  let rows = new Map<string, RefusalCount>()
  let rowsOf = new Map<string, number>()

  function rowFor(refusal: Unrecorded): Unrecorded {
    const { organizationId } = refusal
    const own = rowsOf.get(organizationId) ?? 0
    if (rows.has(nameOf(refusal)) || (rows.size < ownRowsMax && own < rowsOfOneMax)) return refusal
    const others = { organizationId, projectId: '', keyId: otherKeys, scope: '', metric: '' }
    if (rows.has(nameOf(others)) || rows.size < refusalRowsMax - 1) return others
    return { ...others, organizationId: operatorId }
  }

  return {
    note(refusal: Unrecorded, at: Date) {
      const row = rowFor(refusal)
      const name = nameOf(row)
      const known = rows.get(name)
      if (known) {
        known.count++
        known.lastAt = at
        return
      }
      rows.set(name, { ...row, count: 1, lastAt: at })
      rowsOf.set(row.organizationId, (rowsOf.get(row.organizationId) ?? 0) + 1)
    },
    size: () => rows.size,
    /** Returns what was added up since the last time. */
    take(): RefusalCount[] {
      const taken = [...rows.values()]
      rows = new Map()
      rowsOf = new Map()
      return taken
    },
  }
}

const nameOf = ({ organizationId, projectId, keyId, scope, metric }: Unrecorded) =>
  [organizationId, projectId, keyId, scope, metric].join('\n')
