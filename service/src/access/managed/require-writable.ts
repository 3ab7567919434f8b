import type { Announce } from '#audit/announce.ts'
import { callerOf, type EventHeader } from '#audit/event.ts'
import type { Resource } from '#audit/revision-content.ts'
import type { ObjectWriter } from '#http/mutation/writer.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

import { type ManagedTable, setManagedBy } from './managed-store.ts'

/** Who changes an object, and with which request. */
export type WritingCaller = { principal: Principal; requestId: string; writer: ObjectWriter }

type ManagedObject = {
  table: ManagedTable
  id: string
  managedBy: string | null
  /** As answers and events show it when this set manages it. */
  present(managedBy: string | null): Resource | Promise<Resource>
  /** Further members of the header of its events. */
  facts?: EventHeader
}

/** What an object is called in messages. */
const nouns = {
  project: 'project',
  api_key: 'key',
  policy: 'policy',
  gateway_config: 'configuration',
  export_sink: 'export sink',
  guardrail: 'guardrail',
  member: 'member',
} as const satisfies Record<ManagedTable, string>

/**
 * Refuses a change of an object that another set manages (409), or takes the object over if the request asks for it, which is an
 * event of its own. The caller has locked the object. Returns the set that manages it from now on.
 */
export async function requireWritable(
  tx: Tx,
  { announce }: { announce: Announce },
  caller: WritingCaller,
  { table, id, managedBy, present, facts }: ManagedObject,
): Promise<string | null> {
  const judgement = requireJudgement(caller.writer, table, managedBy)
  if (judgement === 'allowed') return managedBy
  const { set } = caller.writer
  const { organizationId } = caller.principal
  await setManagedBy(tx, { table, organizationId, id }, set)
  await announce(tx, {
    organizationId,
    by: callerOf(caller),
    action: 'taken_over',
    before: await present(managedBy),
    after: await present(set),
    facts: { ...facts, managed_by: set, managed_by_before: managedBy },
  })
  return set
}

/** Whether the request may change the object as it is, or by taking it over; else 409. */
export function requireJudgement(
  writer: ObjectWriter,
  table: ManagedTable,
  managedBy: string | null,
): 'allowed' | 'taken_over' {
  const judgement = writer.judge(managedBy)
  if (judgement === 'refused') throw managedElsewhere(nouns[table], managedBy)
  return judgement
}

const managedElsewhere = (noun: string, managedBy: string | null) =>
  new ApiError(
    'managed_elsewhere',
    managedBy === null
      ? `No set manages the ${noun}; leave out the header X-Gatehouse-Set, or repeat the request with take_over=true.`
      : `The ${noun} is managed by the set '${managedBy}'; change it there, or repeat the request with take_over=true.`,
    { param: 'header.X-Gatehouse-Set' },
  )
