import {
  buildCallEvent,
  type CallReport,
  type Event,
  operatorOrganizationId,
} from '#audit/event.ts'
import type { CallerFormat } from '#formats/format.ts'
import type { Principal } from '#http/principal.ts'

/** Whose call it is. */
export type CallOrigin = {
  requestId: string
  principal: Principal
  format: Pick<CallerFormat, 'name'>
}
type Ending = Pick<CallReport, 'model' | 'outcome' | 'refusal' | 'usage'>

/** The audit event of a call, however it ended. Anonymous callers belong to no organization: theirs is the operator's. */
export function toCallEvent(call: CallOrigin, ending: Ending, at: Date): Event {
  const { requestId, principal, format } = call
  const { kind, organizationId, projectId, credentialId } = principal
  return buildCallEvent(
    {
      ...ending,
      organizationId: kind === 'anonymous' ? operatorOrganizationId : organizationId,
      requestId,
      projectId,
      actor: credentialId,
      target: format.name,
    },
    at,
  )
}
