import { requirePermission } from '#access/unauthorized.ts'
import { ApiError } from '#platform/api-error.ts'

import type { Piece, Receipt } from './answer.ts'
import type { Asked, Call } from './call.ts'
import type { Meter } from './meter.ts'

/** What a call goes through. Each step belongs to a feature of its own; all of them run for every call. */
export type Steps = {
  openMeter(call: Call): Meter
  /** Every limit and a slot, at once; disposing it counts what was used and frees the slot. */
  admit(call: Call, meter: Meter): Promise<AsyncDisposable>
  /** Whatever happens from here on is told, when it is disposed of at the latest. */
  openRecord(call: Call, meter: Meter): CallRecord
  /** Holds what the call may cost at worst. Disposing a bill that was not settled charges what was produced. */
  reserve(call: Call, asked: Asked, meter: Meter): Promise<Bill>
  /** May change what is sent, and may refuse it. */
  judgeRequest(call: Call, asked: Asked): Promise<Asked>
  /** Shows the meter every piece before it hands it on. */
  callModel(call: Call, asked: Asked, meter: Meter): AsyncGenerator<Piece>
  /** Keeps back what is not yet cleared, and ends an answer that may not go on. */
  guardAnswer(call: Call, pieces: AsyncGenerator<Piece>): AsyncGenerator<Piece>
}

export type CallRecord = AsyncDisposable & { finish(receipt: Receipt): Promise<void> }
export type Bill = AsyncDisposable & {
  settle(): Promise<Receipt>
  /** The answer has failed, and not by whoever reads it. */
  noteFailure(error: unknown): void
}

/** Pieces of the answer, then the receipt, which the closing frame carries. */
export type AnswerPart = { piece: Piece } | { receipt: Receipt }

/**
 * The life of one inference call, in order. When the caller hangs up the generator is closed: the bill settles
 * what was produced, the record is written, the slot is freed, in this order.
 */
export async function* runInference(steps: Steps, call: Call): AsyncGenerator<AnswerPart> {
  const meter = steps.openMeter(call)
  await using _slot = await steps.admit(call, meter)
  await using record = steps.openRecord(call, meter)
  const asked = permitted(call)
  await using bill = await steps.reserve(call, asked, meter)
  const allowed = await steps.judgeRequest(call, asked)

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

/** Permission and body are judged now: it was an attempt, whatever they are. */
function permitted({ endpoint, principal, asked }: Call): Asked {
  requirePermission(endpoint, principal)
  if (asked instanceof ApiError) throw asked
  return asked
}
