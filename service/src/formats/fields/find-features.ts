import type { Json } from '#formats/answer.ts'
import { asNumber, asText, isObject, listOf, objectOf } from '#formats/json-values.ts'

import { findBetaRow, readBetas } from './betas.ts'
import {
  type Feature,
  featuresOfUnknownInput,
  type FieldTable,
  refusedRowsOf,
} from './field-table.ts'
import { findToolRow, toolTypeOf } from './tool-types.ts'

/** A feature that a request asks for, and where. `model` is named by a tool for which the provider asks a further model. */
export type Asked = { feature: Feature; place: string; model?: string }

/** All features that a request asks for: by its members, by its tools, and by its beta header. */
export function findFeatures(
  { fields }: FieldTable,
  request: Json,
  headers: Readonly<Record<string, string>>,
): Asked[] {
  const asked: Asked[] = []
  for (const { names, feature, asks = isGiven } of refusedRowsOf(fields)) {
    for (const name of names) {
      if (asks(request[name])) asked.push({ feature, place: `body.${name}` })
    }
  }
  for (const { tool, place } of listTools(request)) {
    const row = findToolRow(toolTypeOf(tool))
    if (row?.class !== 'refused' || row.asks?.(tool) === false) continue
    const model = asText(tool['model'])
    asked.push({ feature: row.feature, place, ...(model !== undefined && { model }) })
  }
  for (const beta of readBetas(headers)) {
    const row = findBetaRow(beta)
    if (row?.class !== 'refused') continue
    asked.push({ feature: row.feature, place: `anthropic-beta: ${beta}` })
  }
  return asked
}

const isGiven = (value: unknown) =>
  value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)

type PlacedTool = { tool: Json; place: string }

/** Tools may contain tools (a namespace), and items of a conversation may add some. */
function listTools(request: Json): PlacedTool[] {
  const added = listOf(request['input']).flatMap((item, index) =>
    toolsIn(objectOf(item), `body.input[${index}]`),
  )
  return [...toolsIn(request, 'body'), ...added]
}

const nestedMax = 5

function toolsIn(owner: Json, place: string, depth = 0): PlacedTool[] {
  if (depth > nestedMax) return []
  return listOf(owner['tools']).flatMap((tool, index) => {
    if (!isObject(tool)) return []
    const at = `${place}.tools[${index}]`
    return [{ tool, place: at }, ...toolsIn(tool, at, depth + 1)]
  })
}

const searchesMax = 100
/** Where the caller names no limit. */
const usualSearches = 10

/** The most web searches that a call reserves: searches beyond it are not charged. */
export function mostWebSearches(request: Json): number {
  const uses = listTools(request).map(({ tool }) => asNumber(tool['max_uses']) ?? 0)
  const named = Math.max(0, ...uses) || asNumber(request['max_tool_calls'])
  return Math.ceil(Math.min(named || usualSearches, searchesMax))
}

/** Where a search is charged with every call, and no answer says how many there were. */
export const leastWebSearches = (request: Json): number =>
  isGiven(request['web_search_options']) ? 1 : 0

/** Whether the provider may read input that the gateway never sees, or read its input more than once. */
export function hasUnseenInput(request: Json, asked: readonly Asked[]): boolean {
  if (asked.some(({ feature }) => featuresOfUnknownInput.has(feature))) return true
  const { context_management: management, compaction } = request
  const edits = Array.isArray(management)
    ? listOf(management)
    : listOf(objectOf(management)['edits'])
  return isGiven(compaction) || edits.some((edit) => toolTypeOf(edit).startsWith('compact'))
}
