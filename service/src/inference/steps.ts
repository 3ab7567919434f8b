import { type Principal, shareOf } from '#http/principal.ts'
import type { InferenceAdmission } from '#limits/limit-inference-calls.ts'
import { ClientGone } from '#platform/client-gone.ts'
import type { Clock } from '#platform/clock.ts'

import { type BillDeps, type FreeCall, openBill, openFreeBill } from './bill.ts'
import type { InputCounting } from './count/input-counting.ts'
import type { InferenceCall } from './inference-call.ts'
import { createMeter, type Meter, type MeteredUsage } from './metering/meter.ts'
import { createOutputRates } from './metering/output-rates.ts'
import type { ModelRequest, ParsedRequest } from './model-request.ts'
import type { RecordRefusal } from './record-refusal.ts'
import type { CallRecord, Steps } from './run-inference.ts'
import type { CallModel } from './upstreams/call-model.ts'

export type StepDeps = BillDeps & {
  limitInferenceCall(attempt: {
    requestId: string
    principal: Principal
    tokens: number
  }): Promise<InferenceAdmission>
  recordRefusal: RecordRefusal
  callModel: CallModel
  counting: Pick<InputCounting, 'countText' | 'learn'>
  steadyNow: Clock
}

const unreadRequest = {
  inputTokens: 0,
  maxOutputTokens: 0,
  countText: async () => 0,
  hiddenTokensPerSecond: () => 0,
  isHungUp: () => false,
}

/** The steps of the pipeline, wired to the features of this process. */
export function createSteps(deps: StepDeps): Steps {
  const { limitInferenceCall, recordRefusal, callModel, counting, steadyNow } = deps
  const rates = createOutputRates()
  return {
    openMeter({ parsed, line, principal, cancellation }) {
      if (!parsed.ok) return createMeter({ ...unreadRequest, now: steadyNow })
      const { model, estimate, maxOutputTokens } = parsed.request
      return createMeter({
        inputTokens: estimate.billedTokens ?? estimate.tokens,
        maxOutputTokens,
        isHungUp: () => cancellation.isCancelled,
        countText: (text) => counting.countText(text, model.encoding, shareOf(principal)),
        hiddenTokensPerSecond: () =>
          model.capabilities.reasoning ? rates.tokensPerSecond(line.upstream ?? '', model.id) : 0,
        now: steadyNow,
      })
    },

    async admit(call, meter) {
      const { requestId, principal, parsed, addHeaders } = call
      const tokens = parsed.ok ? mostTokens(parsed.request) : 0
      const admission = await limitInferenceCall({ requestId, principal, tokens })
      addHeaders(admission.headers)
      const { slot, refusal } = admission
      const settle = async () => {
        await slot?.settle(usedTokens(await meter.usage(), parsed))
      }
      if (refusal) {
        await settle()
        // A call that can never fit has passed the limiter.
        if (slot) await recordRefusal(toRefusedCall(call), refusal)
        throw refusal
      }
      return { [Symbol.asyncDispose]: settle }
    },

    openRecord(call, meter) {
      const { parsed, line } = call
      const write = async () => {
        const usage = await meter.usage()
        line.input_tokens = usage.inputTokens
        line.output_tokens = usage.outputTokens
        if (!parsed.ok) return
        const { model, estimate } = parsed.request
        line.model = model.id
        if (usage.origin !== 'upstream') return
        counting.learn(model, estimate, usage)
        const { outputTokens } = usage
        rates.observe(line.upstream ?? '', model.id, { outputTokens, tookMs: meter.tookMs() })
      }
      return recordOnce(write)
    },

    reserve: (call, request, meter) =>
      isFree(call)
        ? openFreeBill(call, request, meter, deps)
        : openBill(call, request, meter, deps),
    recordRefusal: (call, error) => recordRefusal(toRefusedCall(call), error),
    judgeRequest: async (_, request) => request,
    callModel: (call, request, meter) => callModel(toModelCall(call, request, meter)),
    guardAnswer: (_, pieces) => pieces,
  }
}

const toRefusedCall = ({ parsed, ...call }: InferenceCall) => ({
  ...call,
  model: parsed.ok ? parsed.request.model.id : null,
})

/** An upstream's false report must not use up the limits of its caller. */
function usedTokens({ inputTokens, outputTokens }: MeteredUsage, parsed: ParsedRequest): number {
  if (!parsed.ok) return 0
  const { model, maxOutputTokens } = parsed.request
  return Math.min(inputTokens, model.contextTokens) + Math.min(outputTokens, maxOutputTokens)
}

const mostTokens = ({ estimate, maxOutputTokens }: ModelRequest) =>
  estimate.tokens + maxOutputTokens

const isFree = (call: InferenceCall): call is FreeCall => call.freeCaller !== null

/** A call is logged once, however it ends. */
function recordOnce(write: () => Promise<void>): CallRecord {
  let written: Promise<void> | undefined
  const once = () => (written ??= write())
  return { finish: once, [Symbol.asyncDispose]: once }
}

function toModelCall(call: InferenceCall, request: ModelRequest, meter: Meter) {
  const { model, body, turn, maxOutputTokens } = request
  const { format, headers, cancellation, ending, line, principal, addHeaders } = call
  return {
    organizationId: shareOf(principal),
    model,
    body,
    turn,
    maxOutputTokens,
    callerFormat: format.name,
    headers,
    isPlain: isPlainWanted(request),
    cancellation,
    ending,
    onAttempt: (removed: readonly string[]) => {
      meter.noteSent()
      addHeaders(describeRemoved(removed))
    },
    onAnswering: (upstream: string) => {
      line.upstream = upstream
    },
    onPiece: meter.observe,
    onUnseen: (upstream: string) => {
      line.upstream = upstream
      if (cancellation.reason instanceof ClientGone) meter.noteUnseen()
    },
  }
}

/** A longer answer is streamed from its upstream and folded: connections that are silent for so long break. */
const plainOutputMax = 8192

const isPlainWanted = ({ isStreamed, maxOutputTokens, model }: ModelRequest) =>
  !isStreamed && maxOutputTokens <= plainOutputMax && model.canAnswerPlainly

const namesMax = 20

/** Callers choose the names, so only those that a header can carry are repeated. */
function describeRemoved(names: readonly string[]): Record<string, string> {
  const listed = names.filter((name) => /^[\w.: -]{1,100}$/.test(name)).slice(0, namesMax)
  return listed.length === 0 ? {} : { 'x-gatehouse-removed': listed.join(', ') }
}
