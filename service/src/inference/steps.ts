import type { Principal } from '#http/principal.ts'
import type { InferenceAdmission } from '#limits/limit-inference-calls.ts'
import { ApiError } from '#platform/api-error.ts'

import { type BillTools, type FreeCall, openBill, openFreeBill } from './bill.ts'
import type { Call } from './call.ts'
import type { InputCounting } from './count/input-counting.ts'
import { createMeter, type Meter } from './meter.ts'
import type { CallRecord, Steps } from './run-inference.ts'
import type { CallModel } from './upstreams/call-model.ts'

export type StepTools = BillTools & {
  limitInferenceCall(attempt: {
    requestId: string
    principal: Principal
    tokens: number
  }): Promise<InferenceAdmission>
  callModel: CallModel
  counting: Pick<InputCounting, 'countText' | 'learn'>
}

/** The steps of the pipeline as this process takes them. */
export function createSteps(tools: StepTools): Steps {
  const { limitInferenceCall, callModel, counting } = tools
  return {
    openMeter({ asked }) {
      if (asked instanceof ApiError)
        return createMeter({ inputTokens: 0, countText: async () => 0 })
      const { encoding } = asked.model
      return createMeter({
        inputTokens: asked.estimate.tokens,
        countText: (text) => counting.countText(text, encoding),
      })
    },

    async admit({ requestId, principal, asked, addHeaders }, meter) {
      const tokens = asked instanceof ApiError ? 0 : asked.estimate.tokens + asked.maxOutputTokens
      const admission = await limitInferenceCall({ requestId, principal, tokens })
      addHeaders(admission.headers)
      const { slot, refusal } = admission
      const settle = async () => {
        const { inputTokens, outputTokens } = await meter.usage()
        await slot?.settle(inputTokens + outputTokens)
      }
      if (refusal) {
        await settle()
        throw refusal
      }
      return { [Symbol.asyncDispose]: settle }
    },

    openRecord(call, meter) {
      const { asked, line } = call
      const write = async () => {
        const usage = await meter.usage()
        line.input_tokens = usage.inputTokens
        line.output_tokens = usage.outputTokens
        if (asked instanceof ApiError) return
        line.model = asked.model.id
        if (usage.origin === 'upstream') counting.learn(asked.model, asked.estimate, usage)
      }
      return recordOnce(write)
    },

    reserve: (call, asked, meter) =>
      isFree(call) ? openFreeBill(call, asked, meter, tools) : openBill(call, asked, meter, tools),

    judgeRequest: async (_, asked) => asked,
    callModel: (call, asked, meter) => callModel(toModelCall(call, asked, meter)),
    guardAnswer: (_, pieces) => pieces,
  }
}

const isFree = (call: Call): call is FreeCall => call.freeCaller !== null

/** However a call ends, it is told once. */
function recordOnce(write: () => Promise<void>): CallRecord {
  let written: Promise<void> | undefined
  const once = () => (written ??= write())
  return { finish: once, [Symbol.asyncDispose]: once }
}

function toModelCall(call: Call, asked: Asking, meter: Meter) {
  const { model, request, turn, maxOutputTokens } = asked
  const { protocol, headers, signal, line } = call
  return {
    ...{ model, request, turn, maxOutputTokens, protocol, headers, signal },
    onAnswering: (upstream: string) => {
      line.upstream = upstream
    },
    onPiece: meter.note,
  }
}
type Asking = Exclude<Call['asked'], ApiError>
