import { requirePermission } from '#access/unauthorized.ts'
import type { Piece, Receipt } from '#formats/answer.ts'

import type { InferenceCall } from './inference-call.ts'
import type { Meter } from './metering/meter.ts'
import { type ModelRequest, requireRequest } from './model-request.ts'

/** The steps of a call. Each belongs to one feature, and all of them run for every call. */
export type Steps = {
  openMeter(call: InferenceCall): Meter
  /** Checks every limit and takes a slot; disposing counts the usage and frees the slot. */
  admit(call: InferenceCall, meter: Meter): Promise<AsyncDisposable>
  /** From here on the call is logged with its usage, at the latest when the record is disposed of. */
  openRecord(call: InferenceCall, meter: Meter): CallRecord
  /** Holds the highest possible cost. Disposing of a bill that was not settled charges what was produced. */
  reserve(call: InferenceCall, request: ModelRequest, meter: Meter): Promise<Bill>
  /** Writes the audit event of a call that no bill was opened for. */
  recordRefusal(call: InferenceCall, error: unknown): Promise<void>
  /** May change the request, and may refuse it. */
  judgeRequest(call: InferenceCall, request: ModelRequest): Promise<ModelRequest>
  /** The meter observes every piece before it is yielded. */
  callModel(call: InferenceCall, request: ModelRequest, meter: Meter): AsyncIterable<Piece>
  /** Holds back pieces that are not cleared yet, and ends an answer that may not go on. */
  guardAnswer(call: InferenceCall, pieces: AsyncIterable<Piece>): AsyncIterable<Piece>
}

export type CallRecord = AsyncDisposable & { finish(receipt: Receipt): Promise<void> }
export type Bill = AsyncDisposable & {
  settle(): Promise<Receipt>
  /** Called when the answer fails on the side of the model. */
  noteFailure(error: unknown): void
}

/** A piece of the answer, or, as the last part, the receipt for the closing frame. */
export type AnswerPart = { piece: Piece } | { receipt: Receipt }

/**
 * The life of one inference call, in order. When the caller hangs up, the generator is closed: then the bill is
 * settled for what was produced, the record is written and the slot is freed, in this order.
 */
export async function* runInference(steps: Steps, call: InferenceCall): AsyncGenerator<AnswerPart> {
  const meter = steps.openMeter(call)
  await using _slot = await steps.admit(call, meter)
  await using record = steps.openRecord(call, meter)
  const { request, ...opened } = await openBill(steps, call, meter)
  await using bill = opened.bill
  const allowed = await steps.judgeRequest(call, request)

  const answer = steps.callModel(call, allowed, meter)
  try {
    for await (const piece of steps.guardAnswer(call, answer)) yield { piece }
  } catch (error) {
    bill.noteFailure(error)
    throw error
  }
  const receipt = await bill.settle()
  await record.finish(receipt)
  yield { receipt }
}

/** From here on the bill writes the audit event of the call, when it is settled. */
async function openBill(steps: Steps, call: InferenceCall, meter: Meter) {
  try {
    const request = requirePermitted(call)
    const bill = await steps.reserve(call, request, meter)
    call.onDecided()
    return { request, bill }
  } catch (error) {
    call.onDecided() // others need not wait for its event
    await steps.recordRefusal(call, error)
    throw error
  }
}

/** Permission and body are checked only now, because every attempt counts. */
function requirePermitted({ endpoint, principal, parsed }: InferenceCall): ModelRequest {
  requirePermission(endpoint, principal)
  return requireRequest(parsed)
}
