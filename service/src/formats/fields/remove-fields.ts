import type { Json } from '#formats/answer.ts'
import { isObject } from '#formats/json-values.ts'

import { findBetaRow, readBetas, withBetas } from './betas.ts'
import { withoutCacheTtl } from './cache-ttl.ts'
import { type FieldTable, findRow, type Row } from './field-table.ts'
import { findToolRow, toolTypeOf } from './tool-types.ts'

type Sent = { request: Json; headers: Readonly<Record<string, string>> }

type Options = {
  /** Whether what is in no row of the table passes. */
  passesUnknown: boolean
  /** Whether the catalogue has a price for it. */
  keepsCacheTtl: boolean
}

/** A request and its headers as an upstream of the same format may have them, and the names of what was removed. */
export function removeFields(
  table: FieldTable,
  { request, headers }: Sent,
  { passesUnknown, keepsCacheTtl }: Options,
): { request: Json; headers: Record<string, string>; removed: string[] } {
  const removed: string[] = []
  const keeps = (row: Row | undefined, name: string) => {
    const isKept = row ? row.class !== 'dropped' : passesUnknown
    if (!isKept) removed.push(name)
    return isKept
  }
  const kept = Object.entries(request)
    .filter(([name]) => keeps(findRow(table.fields, name), name))
    .map(([name, value]) => [name, withoutMembers(table, name, value, removed)] as const)
  const betas = readBetas(headers)
  const keptBetas = betas.filter((beta) => keeps(findBetaRow(beta), `anthropic-beta: ${beta}`))
  const body = Object.fromEntries(kept)
  if (Array.isArray(body['tools'])) {
    body['tools'] = body['tools'].filter((tool: unknown) => {
      const type = toolTypeOf(tool)
      return keeps(findToolRow(type), `tools: ${type}`)
    })
  }
  const hasTtl = table.hasCacheTtl && !keepsCacheTtl
  return {
    request: hasTtl ? withoutCacheTtl(body, () => removed.push('cache_control.ttl')) : body,
    headers: keptBetas.length === betas.length ? { ...headers } : withBetas(headers, keptBetas),
    removed: [...new Set(removed)],
  }
}

/** The value of a member without those of its own members that the table drops. */
function withoutMembers({ fields }: FieldTable, name: string, value: unknown, removed: string[]) {
  if (!isObject(value)) return value
  const dropped = Object.keys(value).filter(
    (member) => findRow(fields, `${name}.${member}`)?.class === 'dropped',
  )
  if (dropped.length === 0) return value
  for (const member of dropped) removed.push(`${name}.${member}`)
  return Object.fromEntries(Object.entries(value).filter(([member]) => !dropped.includes(member)))
}
