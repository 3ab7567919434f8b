import type { Json, OutFrame, Receipt, SourceFrame, Writer } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { creditMembers } from '#formats/credit-members.ts'
import type { Answering } from '#formats/format.ts'
import { asIndex, asObject, asText } from '#formats/json-values.ts'
import { passFrame } from '#formats/pass-frame.ts'

import { failResponse } from './response-error.ts'
import { newResponse } from './response-object.ts'
import { writeUsage } from './response-usage.ts'

type Progress = {
  /** The response as the upstream last sent it. */
  response: Json | null
  /** The sequence number of the next frame, in case it must be written here. */
  nextNumber: number
  /** The frame that ends the stream, held until the receipt is known. */
  last: { type: string; json: Json } | null
}

/** Passes on a stream of this format; only its last frame, which gets the receipt, is rewritten. */
export function createResponsePassThrough(answering: Answering): Writer {
  const progress: Progress = { response: null, nextNumber: 0, last: null }
  return {
    write: ({ source }) => pass(progress, source),
    close: (receipt) => [closeWith(progress, receipt)],
    fail: (error) =>
      failResponse(error, {
        response: progress.response ?? newResponse(answering),
        sequenceNumber: progress.nextNumber,
        isNew: progress.response === null,
        hasErrorEvent: answering.hasErrorEvent,
      }),
  }
}

function pass(progress: Progress, source: SourceFrame): OutFrame[] {
  const { event, data, json } = source
  // This format has no end marker; some servers send that of Chat Completions.
  if (progress.last || data === '[DONE]') return []
  const type = asText(json['type']) ?? event
  if (type === 'response.completed' || type === 'response.incomplete') {
    progress.last = { type, json }
    return []
  }
  progress.response = asObject(json['response']) ?? progress.response
  if (data !== '')
    progress.nextNumber = (asIndex(json['sequence_number']) ?? progress.nextNumber) + 1
  return [passFrame(source)]
}

function closeWith({ last }: Progress, receipt: Receipt): OutFrame {
  if (!last) throw new BrokenAnswer('The answer is not finished.')
  const { type, json } = last
  const response = {
    ...asObject(json['response']),
    ...(receipt.usage && { usage: writeUsage(receipt.usage) }),
    ...creditMembers(receipt),
  }
  return { event: type, data: { ...json, response }, bytes: null }
}
