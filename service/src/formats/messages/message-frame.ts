import type { Json, OutFrame, Receipt } from '#formats/answer.ts'
import { creditMembers } from '#formats/credit-members.ts'

/** A frame written here. Its type is on the `event:` line too, because clients select by it. */
export function frameOf(data: Json & { type: string }): OutFrame {
  return { event: data.type, data, bytes: null }
}

/** The last `message_delta`, with the receipt: clients ignore members they do not know. */
export const settledFrame = (messageDelta: Json, receipt: Receipt): OutFrame =>
  frameOf({ ...messageDelta, type: 'message_delta', ...creditMembers(receipt) })

export const stopFrame: OutFrame = frameOf({ type: 'message_stop' })

/** The vendor sends one after `message_start`, and clients take it as the sign that the connection works. */
export const pingFrame: OutFrame = frameOf({ type: 'ping' })
