import { operatorOrganizationId } from '#audit/event.ts'
import { resumeNumbering } from '#audit/log/resume-numbering.ts'
import { hasEvent, listEvents } from '#exports/log/event-list-store.ts'
import { presentEvent } from '#exports/log/present-record.ts'

import type { CommandOutput, OperatorDeps } from './command.ts'

const pageSize = 100

/** Lists the events of an organization, or without one those of callers who belong to none. */
export async function listEventPage(
  id: string,
  after: string | undefined,
  { db }: OperatorDeps,
): Promise<CommandOutput> {
  const organizationId = id || operatorOrganizationId
  if (after !== undefined && !(await hasEvent(db, organizationId, after))) {
    throw new Error(`There is no event '${after}' of ${organizationId}.`)
  }
  const page = { after, limit: pageSize, order: 'desc' } as const
  const { rows, hasMore } = await listEvents(db, organizationId, {}, page)
  const data = rows.map(presentEvent)
  const lines = data.map((event) => {
    const what = firstText(event['action'], event['outcome'], event['decision'])
    const columns = [event.created_at, event.id, event.event_type, what, firstText(event.actor)]
    return [...columns, firstText(event.actor_type)].join('  ').trimEnd()
  })
  const next = hasMore
    ? [`There are more: audit events ${id ? `${id} ` : ''}--after ${data.at(-1)?.id}`]
    : []
  const text = [...lines, ...next].join('\n') || `There are no events of ${organizationId}.`
  return { result: { data, has_more: hasMore }, text: `${text}\n` }
}

/** For databases that were moved to another server. */
export async function resumeAuditLog({ openPatientDb }: OperatorDeps): Promise<CommandOutput> {
  const db = openPatientDb()
  try {
    return { result: { events_numbered: await resumeNumbering(db) } }
  } finally {
    await db.destroy()
  }
}

const firstText = (...members: unknown[]): string =>
  members.find((member) => typeof member === 'string') ?? ''
