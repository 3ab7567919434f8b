import { requirePermission } from '#access/unauthorized.ts'
import type { Piece, Receipt } from '#formats/answer.ts'

import { requireProject } from './configured/require-project.ts'
import type { CallChecks } from './enforcement/call-checks.ts'
import type { OpenChecks } from './enforcement/create-checks.ts'
import { createFindings, type Findings } from './enforcement/findings.ts'
import type { InferenceCall } from './inference-call.ts'
import type { Meter } from './metering/meter.ts'
import { billedInput, type ModelRequest, requireRequest } from './model-request.ts'

/** The steps of a call. Each belongs to one feature, and all of them run for every call. */
export type CallSteps = {
  openMeter(call: InferenceCall): Meter
  /** Checks every limit and takes a slot. */
  admit(call: InferenceCall, meter: Meter): Promise<CallSlot>
  /** From here on the call is certain to be logged with its usage, at the latest when the record is disposed of. */
  openRecord(call: InferenceCall, meter: Meter): CallRecord
  /** Prepares every check of the request and of its answer. */
  openChecks: OpenChecks
  /** Holds the highest possible cost. Disposing of a bill that was not settled charges for what was generated. */
  reserve(call: InferenceCall, checks: BilledChecks, meter: Meter): Promise<Bill>
  /** Writes the audit event of a call for which no bill was opened. */
  recordRefusal(call: InferenceCall, error: unknown, findings: Findings | null): Promise<void>
  /** The meter observes every piece before it is yielded. */
  callModel(call: InferenceCall, request: ModelRequest, meter: Meter): AsyncIterable<Piece>
}

/** What a bill says of the checks: what is sent, and what they have found. */
export type BilledChecks = Pick<CallChecks, 'request' | 'growthMost' | 'findings'>

/** Settling counts the usage and frees the slot. Disposing of a slot settles it if that has not been done. */
export type CallSlot = AsyncDisposable & { settle(): Promise<void> }
export type CallRecord = AsyncDisposable & { finish(receipt: Receipt): Promise<void> }
export type Bill = AsyncDisposable & {
  settle(): Promise<Receipt>
  /** Called when the model's side fails or a policy ends the call. Returns the error that the caller gets. */
  noteFailure(error: unknown): unknown
}

/** A piece of the answer or, as the last part, the receipt for the closing frame. */
export type AnswerPart = { piece: Piece } | { receipt: Receipt }

/**
 * The life of one inference call, in order. When the caller hangs up, the generator is closed; then the bill is settled for
 * what was generated, the record is written and the slot is freed, in this order. When the answer cannot be written in the
 * caller's format, the error is thrown into the generator.
 */
export async function* runInference(
  steps: CallSteps,
  call: InferenceCall,
): AsyncGenerator<AnswerPart> {
  const meter = steps.openMeter(call)
  await using slot = await steps.admit(call, meter)
  await using record = steps.openRecord(call, meter)
  const { checks, ...opened } = await recordingRefusals(steps, call, async (request, findings) => {
    const checks = await steps.openChecks(call, request, findings)
    // A request that is blocked here gets 400 even if the credits would be too few, and it costs nothing.
    await checks.beforeHold()
    if (checks.request !== request) sendInstead(call, checks.request, meter)
    return { checks, bill: await steps.reserve(call, checks, meter) }
  })
  await using bill = opened.bill
  try {
    const held = checks.request
    // Others are asked only about a call that can be paid. If they block it, the hold is settled at 0.
    await checks.afterHold()
    if (checks.request !== held) sendInstead(call, checks.request, meter)
    for await (const piece of checks.guard(() => steps.callModel(call, checks.request, meter))) {
      let isWritten = true
      try {
        yield { piece }
      } catch (error) {
        isWritten = false
        throw error
      } finally {
        if (isWritten && checks.request.isStreamed) meter.noteLeft(piece)
      }
    }
  } catch (error) {
    throw bill.noteFailure(error)
  }
  const receipt = await settleBoth(call, bill, slot)
  await record.finish(receipt)
  yield { receipt }
}

/** Does the work that may refuse a call, and records a refusal. How the call ends later is recorded by its bill. */
async function recordingRefusals<Result>(
  steps: Pick<CallSteps, 'recordRefusal'>,
  call: InferenceCall,
  work: (request: ModelRequest, findings: Findings) => Promise<Result>,
): Promise<Result> {
  let findings: Findings | null = null
  try {
    const request = requirePermitted(call)
    findings = createFindings()
    const result = await work(request, findings)
    call.onDecided()
    return result
  } catch (error) {
    call.onDecided() // the next call need not wait until the event is written
    await steps.recordRefusal(call, error, findings)
    throw error
  }
}

/**
 * Both at once, because a plain answer is sent only after both. Budgets are corrected by what the bill says, so a call that
 * counts in one settles the bill first.
 */
async function settleBoth(call: InferenceCall, bill: Bill, slot: CallSlot): Promise<Receipt> {
  if (!call.counted) return (await Promise.all([bill.settle(), slot.settle()]))[0]
  const receipt = await bill.settle()
  await slot.settle()
  return receipt
}

/** From here on the call is about the request that is sent, not the one that came. */
function sendInstead(call: InferenceCall, request: ModelRequest, meter: Meter) {
  call.parsed = { ok: true, request }
  meter.noteInput(billedInput(request))
}

/** Permission and body are checked only now, because every attempt must have been counted. */
function requirePermitted(call: InferenceCall): ModelRequest {
  const { endpoint, principal, parsed } = call
  requirePermission(endpoint, principal)
  requireProject(call)
  return requireRequest(parsed)
}
