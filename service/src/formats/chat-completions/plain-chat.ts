import {
  type AnswerEvent,
  type Frame,
  type Json,
  noUsage,
  type Receipt,
  type SourceFrame,
} from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { replaceUsage, spliceReceipt } from '#formats/credit-members.ts'
import { asObject, asText } from '#formats/json-values.ts'
import { toProviderError } from '#formats/provider-failure.ts'

import { createBlocks } from './chat-blocks.ts'
import { readChatError } from './chat-error.ts'
import { finishReasonOf, readFinishReason } from './chat-finish-reason.ts'
import { hasMediaIn, readChatUsage, writeChatUsage } from './chat-usage.ts'
import { choicesOf, readSpoken, reasoningOf, signatureOf } from './read-chat-stream.ts'
import { readReasoning } from './reasoning-signature.ts'

/** Reads a chat completion that came as one body. */
export function readPlainChat(source: SourceFrame): Frame {
  const { json } = source
  if (json['error']) throw toProviderError(readChatError(json))
  const { message, finishReason } = onlyChoiceOf(json)
  const reportedUsage = asObject(json['usage'])
  const usage = reportedUsage ? readChatUsage(reportedUsage) : noUsage
  const id = asText(json['id']) ?? ''
  const events: AnswerEvent[] = [{ type: 'started', id, model: asText(json['model']) ?? '', usage }]
  const blocks = createBlocks((event) => events.push(event))
  addReasoning(message, blocks)
  readSpoken(message, blocks)
  blocks.end(id)
  const reason = readFinishReason(finishReason, blocks.content)
  events.push({ type: 'finished', reason, stopSequence: null, usage })
  return { events, source, reportedUsage, hasMedia: hasMediaIn(message) }
}

function onlyChoiceOf(json: Json): { message: Json; finishReason: string } {
  const [choice, another] = choicesOf(json)
  if (another) throw new BrokenAnswer('The answer has a second choice.')
  const message = asObject(choice?.['message'])
  const finishReason = choice && finishReasonOf(choice)
  if (!message) throw new BrokenAnswer('The answer has no message.')
  if (finishReason === undefined) throw new BrokenAnswer('The answer ended in the middle.')
  return { message, finishReason }
}

/** The signatures of all blocks of reasoning stand in one text. */
function addReasoning(message: Json, blocks: ReturnType<typeof createBlocks>) {
  for (const part of readReasoning(reasoningOf(message), signatureOf(message))) {
    if (part.type !== 'reasoning') continue
    blocks.addProse('reasoning', part.text)
    if (part.opaque) blocks.seal(part.opaque)
  }
}

export const settlePlainChat = (source: SourceFrame, receipt: Receipt): string =>
  spliceReceipt(source, receipt, replaceUsage(receipt.usage && writeChatUsage(receipt.usage)))
