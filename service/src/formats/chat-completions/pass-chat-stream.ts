import {
  type Json,
  noUsage,
  type OutFrame,
  type Receipt,
  type SourceFrame,
  type Usage,
  type Writer,
} from '#formats/answer.ts'
import { creditMembers } from '#formats/credit-members.ts'
import type { Answering } from '#formats/format.ts'
import { asObject, isObject, listOf } from '#formats/json-values.ts'
import { passFrame, passRepeated } from '#formats/pass-frame.ts'

import { chatErrorFrame } from './chat-error.ts'
import { finishReasonOf } from './chat-finish-reason.ts'
import { isUsageWanted, writeChatUsage } from './chat-usage.ts'
import { doneFrame } from './write-chat-stream.ts'

/** The end of a stream, held until the receipt is known. */
type HeldEnd = {
  /** All held chunks but `usageChunk`, in their order. */
  chunks: OutFrame[]
  /** The first of `chunks` with a finish reason. */
  finishChunk: OutFrame | undefined
  /** A chunk that has usage and no choices. */
  usageChunk: OutFrame | undefined
  /** The usage of the whole answer, as its reader understood it. */
  usage: Usage
}

/**
 * Passes on the chunks of an upstream byte for byte. The end of the stream is held: every chunk from the first
 * finish reason on, and usage chunks. `close` adds the receipt to one of them. The upstream is always asked for
 * usage, and the caller may not want it, so there are four cases:
 *
 * | Caller asked for usage | Usage                           | Held chunks       | Receipt                     |
 * |------------------------|---------------------------------|-------------------|-----------------------------|
 * | no                     | any                             | lose their usage  | in the finish chunk         |
 * | yes                    | in the upstream's usage chunk   | pass unchanged    | in that usage chunk         |
 * | yes                    | in another chunk, or nowhere    | lose their usage  | in a usage chunk made here  |
 * | yes                    | counted here (`receipt.usage`)  | lose their usage  | in a usage chunk with ours  |
 */
export function createChatPassThrough(answering: Answering): Writer {
  const end: HeldEnd = { chunks: [], finishChunk: undefined, usageChunk: undefined, usage: noUsage }
  let isDone = false

  return {
    write({ events, source, isRepeated }) {
      if (isDone) return []
      if (isRepeated && end.finishChunk === undefined) return [passRepeated(source)]
      for (const event of events) if (event.type === 'finished') end.usage = event.usage
      isDone = source.data === '[DONE]'
      if (isDone) return []
      const isEnding = end.finishChunk !== undefined
      if (!isEnding && !hasFinishReason(source.json) && !isUsageChunk(source.json)) {
        return [passFrame(source)]
      }
      hold(end, source)
      return []
    },
    close(receipt) {
      isDone = true
      const chunks = isUsageWanted(answering.request)
        ? closeWithUsage(end, receipt)
        : closeWithoutUsage(end, receipt)
      return [...chunks, doneFrame]
    },
    fail: (error) => [chatErrorFrame(error, answering.requestId)],
  }
}

function hold(end: HeldEnd, source: SourceFrame) {
  const frame = passFrame(source)
  if (isUsageChunk(source.json)) end.usageChunk = frame
  else end.chunks.push(frame)
  if (hasFinishReason(source.json)) end.finishChunk ??= frame
}

const hasFinishReason = (chunk: Json): boolean =>
  listOf(chunk['choices']).some(
    (choice) => isObject(choice) && finishReasonOf(choice) !== undefined,
  )

const isUsageChunk = (chunk: Json): boolean =>
  isObject(chunk['usage']) && Array.isArray(chunk['choices']) && chunk['choices'].length === 0

function closeWithoutUsage({ chunks, finishChunk }: HeldEnd, receipt: Receipt): OutFrame[] {
  return chunks.map((chunk) => {
    if (chunk !== finishChunk) return withoutUsage(chunk)
    const { usage: _usage, ...data } = dataOf(chunk)
    return frameOf({ ...data, ...creditMembers(receipt) })
  })
}

function closeWithUsage(end: HeldEnd, receipt: Receipt): OutFrame[] {
  const { chunks, usageChunk } = end
  const counted = receipt.usage && { usage: writeChatUsage(receipt.usage) }
  const last = usageChunk ? dataOf(usageChunk) : createUsageChunk(end)
  const isUpstreamsOwn = usageChunk !== undefined && !counted
  return [
    ...(isUpstreamsOwn ? chunks : chunks.map(withoutUsage)),
    frameOf({ ...last, ...counted, ...creditMembers(receipt) }),
  ]
}

/** The usage that stands in another chunk, or else the usage of the whole answer, in a chunk of its own. */
function createUsageChunk({ chunks, usage }: HeldEnd): Json {
  const reported = chunks.map((chunk) => asObject(dataOf(chunk)['usage'])).findLast(Boolean)
  const {
    choices: _choices,
    usage: _usage,
    obfuscation: _padding,
    ...members
  } = dataOf(chunks[0] ?? doneFrame)
  return { ...members, choices: [], usage: reported ?? writeChatUsage(usage) }
}

/** Clients add up the usage of all chunks, so only one chunk may have it. */
function withoutUsage(chunk: OutFrame): OutFrame {
  const data = dataOf(chunk)
  return asObject(data['usage']) ? frameOf({ ...data, usage: null }) : chunk
}

const frameOf = (data: Json): OutFrame => ({ event: null, data, bytes: null })
const dataOf = ({ data }: OutFrame): Json => (data === '[DONE]' ? {} : data)
