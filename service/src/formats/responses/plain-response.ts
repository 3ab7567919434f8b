import type { Frame, Json, OutFrame, Receipt, SourceFrame } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { replaceUsage, spliceReceipt } from '#formats/credit-members.ts'
import { asIndex, asObject, asText, listOf, objectOf } from '#formats/json-values.ts'
import { readComplaint, toProviderError } from '#formats/provider-failure.ts'

import { createResponseReader } from './read-response-stream.ts'
import { hasMediaInOutput, writeUsage } from './response-usage.ts'

/** What a response can be while its model still writes; Gatehouse does not ask for such answers. */
const unfinished: readonly unknown[] = ['queued', 'in_progress']

/** Reads a response that came as one body: it is what the last frame of a stream repeats. */
export function readPlainResponse(source: SourceFrame): Frame {
  const { json } = source
  const error = asObject(json['error'])
  if (error) throw toProviderError(readComplaint(error))
  if (unfinished.includes(json['status'])) throw new BrokenAnswer('The response is not finished.')
  const isFailed = json['status'] === 'failed' || json['status'] === 'cancelled'
  if (!isFailed && !Array.isArray(json['output'])) throw new BrokenAnswer('There is no output.')
  return {
    events: createResponseReader().read(asLastFrame(source)),
    source,
    reportedUsage: asObject(json['usage']),
    hasMedia: hasMediaInOutput(json),
  }
}

function asLastFrame({ json: response, data, bytes }: SourceFrame): SourceFrame {
  const type = 'response.completed'
  const json: Json = { type, response }
  return { event: type, data, bytes, json }
}

export const settlePlainResponse = (source: SourceFrame, receipt: Receipt): string =>
  spliceReceipt(source, receipt, replaceUsage(receipt.usage && writeUsage(receipt.usage)))

/** The plain answer is the response in the last frame of the stream. */
export function foldResponseStream(frames: readonly OutFrame[]): Json {
  for (const frame of frames.toReversed()) {
    const data = objectOf(frame.data)
    switch (asText(data['type']) ?? frame.event ?? '') {
      case 'response.completed':
      case 'response.incomplete':
        return withOutput(objectOf(data['response']), frames)
      case 'response.failed':
        throw toProviderError(readComplaint(objectOf(objectOf(data['response'])['error'])))
      case 'error':
        throw toProviderError(readComplaint(asObject(data['error']) ?? data))
    }
  }
  throw new BrokenAnswer('The stream has no end.')
}

/** Some servers leave the output out of the last frame, because they sent every item before. */
function withOutput(response: Json, frames: readonly OutFrame[]): Json {
  if (listOf(response['output']).length > 0) return response
  const items = new Map<number, unknown>()
  for (const { data } of frames) {
    if (typeof data === 'string' || data['type'] !== 'response.output_item.done') continue
    items.set(asIndex(data['output_index']) ?? items.size, data['item'])
  }
  const indexes = [...items.keys()].toSorted((one, other) => one - other)
  return { ...response, output: indexes.map((index) => items.get(index)) }
}
