import type { Json, OutFrame, SourceFrame, Writer } from '#inference/answer.ts'
import { asItCame } from '#inference/as-it-came.ts'
import type { Answering } from '#inference/protocol.ts'
import { objectOf } from '#inference/untyped.ts'

import { errorFrame } from './message-error.ts'
import { settledFrame, stopFrame } from './message-frame.ts'
import { completeUsage, mergeUsage, writeUsage } from './message-usage.ts'
import { typeOf } from './read-message-stream.ts'

/**
 * Hands on a stream of this format, byte for byte. Kept back are the `message_delta`, which must carry the
 * receipt, and `message_stop` after it. Of several `message_delta` only the last is ours to change.
 */
export function createMessagePassThrough(answering: Answering): Writer {
  let lastDelta: SourceFrame | null = null
  let usage: Json = {}
  let stop: SourceFrame | null = null

  function write(source: SourceFrame): OutFrame[] {
    const type = typeOf(source)
    if (stop || source.data === '[DONE]') return []
    if (type === 'message_start') usage = objectOf(objectOf(source.json['message'])['usage'])
    if (type === 'message_stop') {
      stop = source
      return []
    }
    if (type !== 'message_delta') return [asItCame(source)]
    usage = mergeUsage(usage, objectOf(source.json['usage']))
    const earlier = lastDelta
    lastDelta = source
    return earlier ? [asItCame(earlier)] : []
  }

  return {
    write: ({ source }) => write(source),
    close(receipt) {
      const delta = lastDelta?.json ?? { delta: { stop_reason: 'end_turn', stop_sequence: null } }
      const said = receipt.usage ? writeUsage(receipt.usage) : completeUsage(usage)
      const settled = settledFrame({ ...delta, usage: said }, receipt)
      return [settled, stop ? asItCame(stop) : stopFrame]
    },
    fail: (error) => [errorFrame(error, answering.requestId)],
  }
}
