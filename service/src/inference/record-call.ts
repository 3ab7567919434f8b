import type { EventWriter } from '#audit/event-writer.ts'
import { toApiError } from '#platform/to-api-error.ts'

import type { CallOrigin, CallEnding, ToEvent } from './call-event.ts'
import type { Findings } from './enforcement/findings.ts'
import { isBlock } from './enforcement/refusals.ts'

type RecordedCall = CallOrigin & { model: string | null }
export type RecordRefusal = (
  call: RecordedCall,
  error: unknown,
  findings: Findings | null,
) => Promise<void>
export type RecordCount = (
  call: RecordedCall,
  counted: { inputTokens: number },
  findings: Findings | null,
) => Promise<void>

/**
 * Writes the audit events of calls that passed the limiter but were never sent to a model: they have no bill that would write
 * the event. The caller is answered only after the event is written, unless the organization has switched `audit_logs` off.
 */
export function createCallRecords(events: Pick<EventWriter, 'write'>, toEvent: ToEvent) {
  async function write(call: RecordedCall, ending: CallEnding) {
    const written = events.write(toEvent(call, ending)) // never rejects
    if (call.policies?.snapshot.gateway?.config.org_controls.audit_logs ?? true) await written
  }

  const recordRefusal: RecordRefusal = async (call, error, findings) => {
    const { status, code } = toApiError(error)
    const ending = {
      model: call.model,
      outcome: isBlock(error) ? ('blocked' as const) : ('refused' as const),
      refusal: { status, code },
      usage: { credits: 0 },
      findings,
      error,
    }
    await write(call, ending)
  }
  const recordCount: RecordCount = async (call, { inputTokens }, findings) => {
    const ending = {
      model: call.model,
      outcome: 'completed' as const,
      usage: { input_tokens: inputTokens, credits: 0 },
      findings,
      error: undefined,
    }
    await write(call, ending)
  }
  return { recordRefusal, recordCount }
}
