import type { Json, OutFrame, Receipt } from '#inference/answer.ts'
import { creditMembers } from '#inference/credit-members.ts'

/** A frame of our own; its name stands on the `event:` line too, because clients select by it. */
export function frameOf(data: Json & { type: string }): OutFrame {
  return { event: data.type, data, bytes: null }
}

/** The last word on a message, with what it has cost (G4.53). */
export const settledFrame = (messageDelta: Json, receipt: Receipt): OutFrame =>
  frameOf({ ...messageDelta, type: 'message_delta', ...creditMembers(receipt) })

export const stopFrame: OutFrame = frameOf({ type: 'message_stop' })
