import type { AnswerEvent, Frame, Json, Receipt, SourceFrame } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { parseAnswer, spliceReceipt } from '#formats/credit-members.ts'
import { asObject, asText, isObject, listOf, objectOf } from '#formats/json-values.ts'
import { toProviderError } from '#formats/provider-failure.ts'
import { mayHaveUnsafeNumber } from '#platform/exact-json.ts'

import { withoutNullCitations } from './fold-message-stream.ts'
import { readMessageError } from './message-error.ts'
import {
  completeUsage,
  isCompleteUsage,
  readMessageUsage,
  writeMessageUsage,
} from './message-usage.ts'
import { createBlockReader } from './read-message-block.ts'
import { readStopReason } from './stop-reason.ts'

/** Reads a message that came as one body. */
export function readPlainMessage(source: SourceFrame): Frame {
  const { json } = source
  const content = contentOf(source)
  const reportedUsage = asObject(json['usage'])
  const usage = readMessageUsage(reportedUsage ?? {})
  const id = asText(json['id']) ?? ''
  const events: AnswerEvent[] = [{ type: 'started', id, model: asText(json['model']) ?? '', usage }]
  let index = 0
  for (const written of content) {
    if (!isObject(written)) throw new BrokenAnswer('A block is not an object.')
    const block = createBlockReader(index, written)
    if (!block.isKnown) continue
    index += 1
    events.push(...block.start(), ...block.end())
  }
  events.push({
    type: 'finished',
    reason: readStopReason(json['stop_reason']),
    stopSequence: asText(json['stop_sequence']) ?? null,
    usage,
  })
  return { events, source, reportedUsage }
}

/** The input of a tool is JSON inside the body, and its numbers must stay as they were written. */
function contentOf({ json, data }: SourceFrame): readonly unknown[] {
  const { content } = json
  if (!Array.isArray(content)) {
    if (json['type'] === 'error' || json['error']) throw toProviderError(readMessageError(json))
    throw new BrokenAnswer('The message has no content.')
  }
  const isExact = !content.some(isToolUse) || !mayHaveUnsafeNumber(data)
  return isExact ? (content as unknown[]) : (parseAnswer(data)['content'] as unknown[])
}

const isToolUse = (block: unknown) => objectOf(block)['type'] === 'tool_use'

/** The message with the receipt, with every count that a usage must have, and without citations that are null. */
export function settlePlainMessage(source: SourceFrame, receipt: Receipt): string {
  const { json } = source
  const usage = changedUsage(objectOf(json['usage']), receipt)
  const hasNull = listOf(json['content']).some((block) => objectOf(block)['citations'] === null)
  if (!usage && !hasNull) return spliceReceipt(source, receipt, null)
  return spliceReceipt(source, receipt, (message) => ({
    ...message,
    content: listOf(message['content']).map((block) =>
      isObject(block) ? withoutNullCitations(block) : block,
    ),
    ...(usage && { usage }),
  }))
}

function changedUsage(reported: Json, { usage }: Receipt): Json | null {
  if (usage) return writeMessageUsage(usage)
  return isCompleteUsage(reported) ? null : completeUsage(reported)
}
