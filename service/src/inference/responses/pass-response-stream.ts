import type { Json, OutFrame, Receipt, SourceFrame, Writer } from '#inference/answer.ts'
import { asItCame } from '#inference/as-it-came.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { creditMembers } from '#inference/credit-members.ts'
import type { Answering } from '#inference/protocol.ts'
import { asIndex, asObject, asText } from '#inference/untyped.ts'

import { failResponse } from './response-error.ts'
import { newResponse } from './response-object.ts'
import { writeUsage } from './response-usage.ts'

type Passing = {
  /** The response as the upstream last described it. */
  response: Json | null
  /** The number of the next frame, should we have to write one. */
  nextNumber: number
  /** The frame that ends the stream: it waits for the receipt. */
  last: { type: string; json: Json } | null
}

/** Hands on a stream of this format; only its last frame, which gets the receipt, is written anew. */
export function createResponsePassThrough(answering: Answering): Writer {
  const passing: Passing = { response: null, nextNumber: 0, last: null }
  return {
    write: ({ source }) => pass(passing, source),
    close: (receipt) => [closeWith(passing, receipt)],
    fail: (error) =>
      failResponse(error, {
        response: passing.response ?? newResponse(answering),
        sequenceNumber: passing.nextNumber,
        isNew: passing.response === null,
      }),
  }
}

function pass(passing: Passing, source: SourceFrame): OutFrame[] {
  const { event, data, json } = source
  // This format has no end marker of its own; some servers send the one of another.
  if (passing.last || data === '[DONE]') return []
  const type = asText(json['type']) ?? event
  if (type === 'response.completed' || type === 'response.incomplete') {
    passing.last = { type, json }
    return []
  }
  passing.response = asObject(json['response']) ?? passing.response
  if (data !== '') passing.nextNumber = (asIndex(json['sequence_number']) ?? passing.nextNumber) + 1
  return [asItCame(source)]
}

function closeWith({ last }: Passing, receipt: Receipt): OutFrame {
  if (!last) throw new BrokenAnswer('The answer is not finished.')
  const { type, json } = last
  const response = {
    ...asObject(json['response']),
    ...(receipt.usage && { usage: writeUsage(receipt.usage) }),
    ...creditMembers(receipt),
  }
  return { event: type, data: { ...json, response }, bytes: null }
}
