import { requirePermission } from '#access/unauthorized.ts'
import type { Piece, Receipt } from '#formats/answer.ts'

import { requireProject } from './gateway/require-project.ts'
import type { InferenceCall } from './inference-call.ts'
import {
  type Findings,
  type JudgeRequest,
  type Judgement,
  createFindings,
} from './judging/verdicts/judgement.ts'
import type { Meter } from './metering/meter.ts'
import { billedInput, type ModelRequest, requireRequest } from './model-request.ts'
import { answerWith } from './replacing/sent-blocks.ts'

/** The steps of a call. Each belongs to one feature, and all of them run for every call. */
export type Steps = {
  openMeter(call: InferenceCall): Meter
  /** Checks every limit and takes a slot. */
  admit(call: InferenceCall, meter: Meter): Promise<CallSlot>
  /** From here on the call is logged with its usage, at the latest when the record is disposed of. */
  openRecord(call: InferenceCall, meter: Meter): CallRecord
  /**
   * Evaluates the exact rules on the request; may change it, and may refuse it. This comes before the hold: a request
   * that a rule blocks is 400 also where the credits are too few, and it costs nothing.
   */
  judgeRequest: JudgeRequest
  /** Holds the highest possible cost. Disposing of a bill that was not settled charges what was produced. */
  reserve(call: InferenceCall, judgement: Judgement, meter: Meter): Promise<Bill>
  /** Writes the audit event of a call that no bill was opened for. */
  recordRefusal(call: InferenceCall, error: unknown, findings: Findings | null): Promise<void>
  /**
   * Waits for verdicts that cost something, of remote scorers and judges; they are asked only for a call that can be
   * paid. A block by one of them throws, and the hold is settled at 0, also if other words are said instead.
   */
  settleVerdicts(call: InferenceCall, judgement: Judgement): Promise<void>
  /** The meter observes every piece before it is yielded. */
  callModel(call: InferenceCall, request: ModelRequest, meter: Meter): AsyncIterable<Piece>
  /** Holds back pieces that are not cleared yet, and ends an answer that may not go on. */
  guardAnswer(
    call: InferenceCall,
    judgement: Judgement,
    pieces: AsyncIterable<Piece>,
  ): AsyncIterable<Piece>
}

/** Settling counts the usage and frees the slot; so does disposing of a slot that was not settled. */
export type CallSlot = AsyncDisposable & { settle(): Promise<void> }
export type CallRecord = AsyncDisposable & { finish(receipt: Receipt): Promise<void> }
export type Bill = AsyncDisposable & {
  settle(): Promise<Receipt>
  /** Called when the call fails on the side of the model, or is ended by its policies. Returns what the caller is told. */
  noteFailure(error: unknown): unknown
}

/** A piece of the answer, or, as the last part, the receipt for the closing frame. */
export type AnswerPart = { piece: Piece } | { receipt: Receipt }

/**
 * The life of one inference call, in order. When the caller hangs up, the generator is closed: then the bill is
 * settled for what was produced, the record is written and the slot is freed, in this order. When the answer cannot be written
 * in the caller's format, the error is thrown into the generator.
 */
export async function* runInference(steps: Steps, call: InferenceCall): AsyncGenerator<AnswerPart> {
  const meter = steps.openMeter(call)
  await using slot = await steps.admit(call, meter)
  await using record = steps.openRecord(call, meter)
  const { judgement, ...opened } = await openBill(steps, call, meter)
  await using bill = opened.bill
  try {
    const answer = await openAnswer(steps, call, judgement, meter)
    for await (const piece of answer) {
      let isWritten = true
      try {
        yield { piece }
      } catch (error) {
        isWritten = false
        throw error
      } finally {
        if (isWritten && judgement.request.isStreamed) meter.noteLeft(piece)
      }
    }
  } catch (error) {
    throw bill.noteFailure(error)
  }
  const receipt = await settleBoth(call, bill, slot)
  await record.finish(receipt)
  yield { receipt }
}

/** Side by side, because a plain answer is sent only after both. Budgets are corrected by what the bill says. */
async function settleBoth(call: InferenceCall, bill: Bill, slot: CallSlot): Promise<Receipt> {
  if (!call.counted) return (await Promise.all([bill.settle(), slot.settle()]))[0]
  const receipt = await bill.settle()
  await slot.settle()
  return receipt
}

/** From here on the bill writes the audit event of the call, when it is settled. */
async function openBill(steps: Steps, call: InferenceCall, meter: Meter) {
  let findings: Findings | null = null
  try {
    const request = requirePermitted(call)
    findings = createFindings()
    const judgement = await steps.judgeRequest(call, request, findings)
    findings = judgement
    if (judgement.refusal) throw judgement.refusal
    if (judgement.request !== request) sendInstead(call, judgement.request, meter)
    const bill = await steps.reserve(call, judgement, meter)
    call.onDecided()
    return { judgement, bill }
  } catch (error) {
    call.onDecided() // others need not wait for its event
    await steps.recordRefusal(call, error, findings)
    throw error
  }
}

/** From here on the call is about what is sent, not about what came. */
function sendInstead(call: InferenceCall, request: ModelRequest, meter: Meter) {
  call.parsed = { ok: true, request }
  meter.noteInput(billedInput(request))
}

/** The answer of the model, or what is said instead of a request that may not be sent to it. */
async function openAnswer(
  steps: Steps,
  call: InferenceCall,
  judgement: Judgement,
  meter: Meter,
): Promise<AsyncIterable<Piece> | Iterable<Piece>> {
  try {
    await steps.settleVerdicts(call, judgement)
  } catch (error) {
    const replacement = await judgement.replace?.(error)
    if (!replacement) throw error
    return [answerWith(replacement.text)]
  }
  const answer = steps.callModel(call, judgement.request, meter)
  return steps.guardAnswer(call, judgement, answer)
}

/** Permission and body are checked only now, because every attempt counts. */
function requirePermitted(call: InferenceCall): ModelRequest {
  const { endpoint, principal, parsed } = call
  requirePermission(endpoint, principal)
  requireProject(call)
  return requireRequest(parsed)
}
