/**
 * What costs extra, or lets a caller reach more than the model: refused unless the model's entry in the catalogue
 * allows it.
 */
export const features = [
  'web_search',
  'web_fetch',
  'code_execution',
  'image_generation',
  'file_search',
  'computer_use',
  'mcp',
  'advisor',
  'audio_output',
  'image_output',
  'containers',
  'stored_prompts',
  'long_context',
] as const
export type Feature = (typeof features)[number]

/** With these the provider adds input that the gateway never sees: it may fill the model's whole context. */
export const featuresOfUnknownInput: ReadonlySet<Feature> = new Set([
  'web_search',
  'web_fetch',
  'code_execution',
  'image_generation',
  'file_search',
  'mcp',
  'advisor',
  'containers',
  'stored_prompts',
])

/** What happens to the things of these names, and why. */
export type Row = { names: readonly string[]; reason: string } & (
  | { class: 'known' | 'dropped' }
  | {
      class: 'refused'
      feature: Feature
      /** Whether this value asks for the feature; every value does unless given. */
      asks?: (value: unknown) => boolean
    }
)

/** How a wire format treats what callers send beyond the conversation. What is in no row is unknown. */
export type FieldTable = {
  /** Members of the request. A dropped one may be a member of a member, like `a.b`. */
  fields: readonly Row[]
  /** Whether its cache markers have a `ttl`, with a price of its own. */
  hasCacheTtl: boolean
}

type RowIndex = { byName: ReadonlyMap<string, Row>; refused: readonly RefusedRow[] }
export type RefusedRow = Extract<Row, { class: 'refused' }>

/** Every call looks up each of its members, so a table is searched once. */
const indexes = new WeakMap<readonly Row[], RowIndex>()

function indexOf(rows: readonly Row[]): RowIndex {
  const known = indexes.get(rows)
  if (known) return known
  const byName = new Map<string, Row>()
  for (const row of rows) {
    for (const name of row.names) if (!byName.has(name)) byName.set(name, row)
  }
  const index = { byName, refused: rows.filter((row) => row.class === 'refused') }
  indexes.set(rows, index)
  return index
}

export const findRow = (rows: readonly Row[], name: string): Row | undefined =>
  indexOf(rows).byName.get(name)

export const refusedRowsOf = (rows: readonly Row[]): readonly RefusedRow[] => indexOf(rows).refused

/** `web_search` stands for `web_search_20250305` and `vendor:web_search` too, but not for `web_searcher`. */
export function findRowByStart(rows: readonly Row[], fullName: string): Row | undefined {
  const name = fullName.replace(/^[\w.-]+:/, '')
  return rows.find(({ names }) =>
    names.some((start) => name.startsWith(start) && /^([_-]|$)/.test(name.slice(start.length))),
  )
}
