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
  /** From here on the call is logged with its usage, at the latest when the record is disposed of. */
  openRecord(call: InferenceCall, meter: Meter): CallRecord
  /** Prepares every check of the request and of its answer. */
  openChecks: OpenChecks
  /** Holds the highest possible cost. Disposing of a bill that was not settled charges what was produced. */
  reserve(call: InferenceCall, checks: BilledChecks, meter: Meter): Promise<Bill>
  /** Writes the audit event of a call that no bill was opened for. */
  recordRefusal(call: InferenceCall, error: unknown, findings: Findings | null): Promise<void>
  /** The meter observes every piece before it is yielded. */
  callModel(call: InferenceCall, request: ModelRequest, meter: Meter): AsyncIterable<Piece>
}

/** What a bill says of the checks: what is sent, and what they have found. */
export type BilledChecks = Pick<CallChecks, 'request' | 'growthMost' | 'findings'>

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
export async function* runInference(
  steps: CallSteps,
  call: InferenceCall,
): AsyncGenerator<AnswerPart> {
  const meter = steps.openMeter(call)
  await using slot = await steps.admit(call, meter)
  await using record = steps.openRecord(call, meter)
  const { checks, ...opened } = await recordingRefusals(steps, call, async (request, findings) => {
    const checks = await steps.openChecks(call, request, findings)
    // A request that is blocked here is 400 also where the credits are too few, and it costs nothing.
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

/** Does what may refuse a call. A refusal is recorded here; what becomes of the call later, its bill records. */
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
    call.onDecided() // others need not wait for its event
    await steps.recordRefusal(call, error, findings)
    throw error
  }
}

/** Side by side, because a plain answer is sent only after both. Budgets are corrected by what the bill says. */
async function settleBoth(call: InferenceCall, bill: Bill, slot: CallSlot): Promise<Receipt> {
  if (!call.counted) return (await Promise.all([bill.settle(), slot.settle()]))[0]
  const receipt = await bill.settle()
  await slot.settle()
  return receipt
}

/** From here on the call is about what is sent, not about what came. */
function sendInstead(call: InferenceCall, request: ModelRequest, meter: Meter) {
  call.parsed = { ok: true, request }
  meter.noteInput(billedInput(request))
}

/** Permission and body are checked only now, because every attempt counts. */
function requirePermitted(call: InferenceCall): ModelRequest {
  const { endpoint, principal, parsed } = call
  requirePermission(endpoint, principal)
  requireProject(call)
  return requireRequest(parsed)
}
