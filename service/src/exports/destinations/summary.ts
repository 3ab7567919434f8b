import type { ExportRecord } from './destination.ts'
import { oneLine } from './one-line.ts'

/** In this order, and only those that a record has. */
const named = [
  'policy_id',
  'policy_name',
  'reason_code',
  'object',
  'object_id',
  'model',
  'project_id',
  'actor',
  'actor_type',
  'request_id',
] as const
const textMax = 200

/** What happened, in one line, for those who read a list of logs. The members of the record say the rest. */
export function summarise(record: ExportRecord): string {
  const { event_type, effective_decision, decision, action, org_id, org_seq, event_id } = record
  const done = effective_decision ?? decision ?? action
  const said = named.flatMap((name) => {
    const value = record[name]
    return typeof value === 'string' && value !== '' ? [`${name}=${shorten(value)}`] : []
  })
  const first = typeof done === 'string' ? `${event_type} ${shorten(done)}` : event_type
  return [first, ...said, `org_id=${org_id}`, `org_seq=${org_seq}`, `event_id=${event_id}`].join(
    ' ',
  )
}

const shorten = (text: string) => oneLine(text, textMax)

/** Whether a caller was refused something: by a policy, a limit or a missing permission. */
export function isWarning({ enforced, effective_decision, outcome }: ExportRecord): boolean {
  return (
    enforced === true ||
    effective_decision === 'refuse' ||
    outcome === 'refused' ||
    outcome === 'blocked'
  )
}
