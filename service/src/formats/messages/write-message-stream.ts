import {
  type AnswerEvent,
  type Json,
  noUsage,
  type OutFrame,
  type StopReason,
  type Writer,
} from '#formats/answer.ts'
import type { Answering } from '#formats/format.ts'

import { messageErrorFrame } from './message-error.ts'
import { frameOf, pingFrame, settledFrame, stopFrame } from './message-frame.ts'
import { writeMessageUsage } from './message-usage.ts'
import { createBlockQueue } from './one-block-at-a-time.ts'
import { writeStopReason } from './stop-reason.ts'
import { createBlockWriter } from './write-message-block.ts'

type Started = Extract<AnswerEvent, { type: 'started' }>
type Finished = Extract<AnswerEvent, { type: 'finished' }>

/** Writes an answer of another format as a stream of this one. */
export function createMessageWriter(answering: Answering): Writer {
  const queue = createBlockQueue()
  const writeBlock = createBlockWriter()
  const kinds = new Set<string>()
  let finished: Finished = {
    type: 'finished',
    reason: 'end',
    stopSequence: null,
    usage: noUsage,
  }

  function writeEvent(event: AnswerEvent): OutFrame[] {
    if (event.type === 'started') return [messageStart(answering, event), pingFrame]
    if (event.type === 'finished') {
      finished = event
      return []
    }
    if (event.type === 'block_started') kinds.add(event.block.type)
    return writeBlock(event)
  }

  return {
    write: ({ events }) => events.flatMap((event) => queue.push(event).flatMap(writeEvent)),
    close(receipt) {
      const settled = { ...finished, usage: receipt.usage ?? finished.usage }
      return [settledFrame(messageDelta(settled, kinds), receipt), stopFrame]
    },
    fail: (error) => [messageErrorFrame(error, answering.requestId)],
  }
}

/** Clients show the number of input tokens from the start, when most upstreams have not reported it yet. */
function messageStart(
  { requestId, model, inputTokens }: Answering,
  { usage, isUnread }: Started,
): OutFrame {
  const isKnown = isUnread || usage.inputTokens > 0
  const known = isKnown ? usage : { ...usage, inputTokens }
  return frameOf({
    type: 'message_start',
    message: {
      id: `msg_${requestId.slice(-24)}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: writeMessageUsage(known),
    },
  })
}

function messageDelta(finished: Finished, kinds: ReadonlySet<string>): Json {
  const { stopSequence, usage } = finished
  return {
    delta: {
      stop_reason: writeStopReason(refineReason(finished.reason, kinds)),
      stop_sequence: stopSequence,
    },
    usage: writeMessageUsage(usage),
  }
}

/** Clients of this format rely on the stop reason; other formats often report tool calls and refusals as an end. */
function refineReason(reason: StopReason, kinds: ReadonlySet<string>): StopReason {
  if (reason !== 'end') return reason
  if (kinds.has('tool_call')) return 'tool_call'
  return kinds.has('refusal') ? 'refusal' : 'end'
}
