import type { Json, OutFrame, SourceFrame, Writer } from '#formats/answer.ts'
import type { Answering } from '#formats/format.ts'
import { objectOf } from '#formats/json-values.ts'
import { passFrame, passRepeated } from '#formats/pass-frame.ts'

import { messageErrorFrame } from './message-error.ts'
import { settledFrame, stopFrame } from './message-frame.ts'
import { completeUsage, mergeUsage, writeMessageUsage } from './message-usage.ts'
import { typeOf } from './read-message-stream.ts'

/**
 * Passes on a stream of this format byte for byte. The last `message_delta`, which must carry the receipt, and
 * `message_stop` after it are held until `close`; earlier `message_delta` frames pass unchanged.
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
    if (type !== 'message_delta') return [passFrame(source)]
    usage = mergeUsage(usage, objectOf(source.json['usage']))
    const earlier = lastDelta
    lastDelta = source
    return earlier ? [passFrame(earlier)] : []
  }

  return {
    write: ({ source, isRepeated }) =>
      isRepeated && !stop ? [passRepeated(source)] : write(source),
    close(receipt) {
      const delta = lastDelta?.json ?? { delta: { stop_reason: 'end_turn', stop_sequence: null } }
      const settledUsage = receipt.usage ? writeMessageUsage(receipt.usage) : completeUsage(usage)
      const settled = settledFrame({ ...delta, usage: settledUsage }, receipt)
      return [settled, stop ? passFrame(stop) : stopFrame]
    },
    fail: (error) => [messageErrorFrame(error, answering.requestId)],
  }
}
