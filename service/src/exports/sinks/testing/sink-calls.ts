import * as contract from '@gatehouse/contract/exports/export-sink'
import { sql } from 'kysely'

import { createUuid } from '#platform/id.ts'
import type { createTestApi } from '#testing/test-api.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>
type Sent = Omit<NonNullable<Parameters<Api['send']>[1]>, 'body'>
type Answer = Awaited<ReturnType<Api['send']>>

export const token = 'canary-token-7f3a'
export const splunk = {
  type: 'splunk_hec',
  config: { endpoint: 'https://splunk.example.com:8088', token },
}

/** The sink in an answer; the members of an error are undefined then. */
const exportIn = ({ status, headers, body }: Answer) => ({
  status,
  headers,
  error: body.error,
  export: (body as unknown as { export: contract.ExportSink }).export,
})

/** The calls of export sinks, as an administrator makes them. */
export const sinkCalls = (api: Api) => ({
  create: async (body: object, sent: Sent = {}) =>
    exportIn(await api.send(contract.createExport, { ...sent, body })),
  read: async (id: string, sent: Sent = {}) =>
    exportIn(await api.send(contract.retrieveExport, { ...sent, params: { export_id: id } })),
  edit: async (id: string, body: object, sent: Sent = {}) =>
    exportIn(await api.send(contract.updateExport, { ...sent, params: { export_id: id }, body })),
  remove: (id: string, sent: Sent = {}) =>
    api.send(contract.deleteExport, { ...sent, params: { export_id: id } }),
  list: async (query: Record<string, string> = {}) =>
    (await api.send(contract.listExports, { query })).body as unknown as {
      data: contract.ExportSink[]
      has_more: boolean
    },
})

/** Events of the organization in the log, one after the other: those of other tests have none. */
export async function writeLog(api: Api, entries: readonly { at: string; day?: string }[]) {
  const { organizationId } = api.organization
  const ids = entries.map(({ at }) => createUuid(new Date(at)))
  for (const [index, { at, day = at.slice(0, 10) }] of entries.entries()) {
    await sql`
      insert into audit_log (day, organization_id, org_seq, event_day, event_id, leaf)
      values (${day}::date, ${organizationId}, ${index + 1}, ${at.slice(0, 10)}::date, ${ids[index]}::uuid,
        ${Buffer.alloc(32)})`.execute(api.db)
  }
  const last = entries.at(-1)
  await sql`
    insert into audit_head (organization_id, org_seq, day, frontier, signed_size)
    values (${organizationId}, ${entries.length}, ${last?.day ?? last?.at.slice(0, 10)}::date, '', 1)`.execute(
    api.db,
  )
  return ids
}
