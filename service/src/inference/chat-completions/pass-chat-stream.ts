import {
  type Json,
  noUsage,
  type OutFrame,
  type Receipt,
  type SourceFrame,
  type Usage,
  type Writer,
} from '#inference/answer.ts'
import { asItCame } from '#inference/as-it-came.ts'
import { creditMembers } from '#inference/credit-members.ts'
import type { Answering } from '#inference/protocol.ts'
import { asObject, isObject, listOf } from '#inference/untyped.ts'

import { errorFrame } from './chat-error.ts'
import { finishReasonOf } from './chat-finish-reason.ts'
import { isUsageWanted, writeUsage } from './chat-usage.ts'
import { doneFrame } from './write-chat-stream.ts'

/**
 * Hands on the chunks of an upstream as they came. From the finish reason on they are kept until the
 * receipt is known. We always ask the upstream for usage, so what its caller did not ask for stays here.
 */
export function createChatPassThrough(answering: Answering): Writer {
  const isUsageInStream = isUsageWanted(answering.request)
  const kept: OutFrame[] = []
  let finish: OutFrame | undefined
  let usageFrame: OutFrame | undefined
  let usage: Usage = noUsage
  let isDone = false

  function keep(source: SourceFrame) {
    const frame = asItCame(source)
    if (isUsageAlone(source.json)) usageFrame = frame
    else kept.push(frame)
    if (hasFinishReason(source.json)) finish ??= frame
  }

  return {
    write({ events, source }) {
      if (isDone) return []
      for (const event of events) if (event.type === 'finished') usage = event.usage
      isDone = source.data === '[DONE]'
      if (isDone) return []
      if (!finish && !hasFinishReason(source.json) && !isUsageAlone(source.json)) {
        return [asItCame(source)]
      }
      keep(source)
      return []
    },
    close(receipt: Receipt) {
      isDone = true
      const credits = creditMembers(receipt)
      if (!isUsageInStream) return [...closeWithoutUsage(kept, finish, credits), doneFrame]
      const last = usageFrame ? dataOf(usageFrame) : usageChunk(kept, usage)
      const counted = receipt.usage && { usage: writeUsage(receipt.usage) }
      const frames = usageFrame && !counted ? kept : kept.map(withoutUsage)
      return [...frames, frameOf({ ...last, ...counted, ...credits }), doneFrame]
    },
    fail: (error) => [errorFrame(error, answering.requestId)],
  }
}

const frameOf = (data: Json): OutFrame => ({ event: null, data, bytes: null })
const dataOf = ({ data }: OutFrame): Json => (data === '[DONE]' ? {} : data)

const hasFinishReason = (chunk: Json): boolean =>
  listOf(chunk['choices']).some(
    (choice) => isObject(choice) && finishReasonOf(choice) !== undefined,
  )

const isUsageAlone = (chunk: Json): boolean =>
  isObject(chunk['usage']) && Array.isArray(chunk['choices']) && chunk['choices'].length === 0

function closeWithoutUsage(kept: OutFrame[], finish: OutFrame | undefined, credits: Json) {
  return kept.map((frame) => {
    if (frame !== finish) return withoutUsage(frame)
    const { usage: _usage, ...data } = dataOf(frame)
    return frameOf({ ...data, ...credits })
  })
}

/** Callers add up the usage of all chunks: it must be in one of them only. */
function withoutUsage(frame: OutFrame): OutFrame {
  const data = dataOf(frame)
  return asObject(data['usage']) ? frameOf({ ...data, usage: null }) : frame
}

/** For an upstream that says it elsewhere, or never. */
function usageChunk(kept: readonly OutFrame[], usage: Usage): Json {
  const said = kept.map((frame) => asObject(dataOf(frame)['usage'])).findLast(Boolean)
  const {
    choices: _,
    usage: _usage,
    obfuscation: _padding,
    ...members
  } = dataOf(kept[0] ?? doneFrame)
  return { ...members, choices: [], usage: said ?? writeUsage(usage) }
}
