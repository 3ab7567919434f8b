import type { EventWriter } from '#audit/event-writer.ts'
import type { Clock } from '#platform/clock.ts'
import { toApiError } from '#platform/to-api-error.ts'

import { type CallOrigin, toCallEvent } from './call-event.ts'

type RefusedCall = CallOrigin & { model: string | null }
export type RecordRefusal = (call: RefusedCall, error: unknown) => Promise<void>

/**
 * Writes the audit event of a call that passed the limiter and was sent to no model: it has no bill, which would carry the
 * event. The caller is answered afterwards, so an answer never exists without its event.
 */
export function createRecordRefusal(events: Pick<EventWriter, 'write'>, now: Clock): RecordRefusal {
  return async (call, error) => {
    const { status, code } = toApiError(error)
    const ending = {
      model: call.model,
      outcome: 'refused' as const,
      refusal: { status, code },
      usage: { credits: 0 },
    }
    await events.write(toCallEvent(call, ending, now()))
  }
}
