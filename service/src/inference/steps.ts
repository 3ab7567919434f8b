import { shareOf } from '#http/principal.ts'
import { ClientGone } from '#platform/client-gone.ts'
import type { Clock } from '#platform/clock.ts'

import { type AdmitDeps, admitCall, toRefusedCall } from './admission/admit-call.ts'
import { type BillDeps, type FreeCall, openBill, openFreeBill } from './bill.ts'
import type { InputCounting } from './count/input-counting.ts'
import type { OpenChecks } from './enforcement/create-checks.ts'
import type { InferenceCall } from './inference-call.ts'
import { createMeter, type Meter } from './metering/meter.ts'
import { createOutputRates } from './metering/output-rates.ts'
import { billedInput, type ModelRequest } from './model-request.ts'
import type { CallRecord, CallSteps } from './run-inference.ts'
import type { CallModel } from './upstreams/call-model.ts'

export type StepDeps = BillDeps &
  AdmitDeps & {
    openChecks: OpenChecks
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
export function createSteps(deps: StepDeps): CallSteps {
  const { recordRefusal, callModel, counting, steadyNow } = deps
  const rates = createOutputRates()
  return {
    openMeter({ parsed, line, principal, cancellation }) {
      if (!parsed.ok) return createMeter({ ...unreadRequest, now: steadyNow })
      const { model, maxOutputTokens } = parsed.request
      return createMeter({
        inputTokens: billedInput(parsed.request),
        maxOutputTokens,
        isHungUp: () => cancellation.isCancelled,
        countText: (text) => counting.countText(text, model.encoding, shareOf(principal)),
        hiddenTokensPerSecond: () =>
          model.capabilities.reasoning
            ? rates.tokensPerSecond(writerOf({ principal, line }, model))
            : 0,
        now: steadyNow,
      })
    },

    admit: (call, meter) => admitCall(call, meter, deps),

    openRecord(call, meter) {
      const { line } = call
      const write = async () => {
        const usage = await meter.usage()
        line.input_tokens = usage.inputTokens
        line.output_tokens = usage.outputTokens
        const { parsed } = call
        if (!parsed.ok) return
        const { model, estimate, maxOutputTokens } = parsed.request
        line.model = model.id
        if (usage.origin !== 'upstream') return
        counting.learn(model, estimate, usage)
        const { outputTokens } = usage
        const written = { outputTokens, maxOutputTokens, tookMs: meter.tookMs() }
        rates.observe(writerOf(call, model), written)
      }
      return recordOnce(write)
    },

    openChecks: deps.openChecks,
    reserve: (call, checks, meter) =>
      isFree(call) ? openFreeBill(call, checks, meter, deps) : openBill(call, checks, meter, deps),
    recordRefusal: (call, error, findings) => recordRefusal(toRefusedCall(call), error, findings),
    callModel: (call, request, meter) => callModel(toModelCall(call, request, meter)),
  }
}

const writerOf = (
  { principal, line }: Pick<InferenceCall, 'principal' | 'line'>,
  { id: model }: ModelRequest['model'],
) => ({ organizationId: shareOf(principal), upstream: line.upstream ?? '', model })

const isFree = (call: InferenceCall): call is FreeCall => call.freeCaller !== null

/** Writes the record of a call once, however the call ends. */
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

/** Longer answers are streamed from the upstream and folded, because some networks close connections that stay silent that long. */
const plainOutputMax = 8192

const isPlainWanted = ({ isStreamed, maxOutputTokens, model }: ModelRequest) =>
  !isStreamed && maxOutputTokens <= plainOutputMax && model.canAnswerPlainly

const namesMax = 20

/** Callers choose the names of members, so only names that a header can carry are repeated. */
function describeRemoved(names: readonly string[]): Record<string, string> {
  const listed = names.filter((name) => /^[\w.: -]{1,100}$/.test(name)).slice(0, namesMax)
  return listed.length === 0 ? {} : { 'x-gatehouse-removed': listed.join(', ') }
}
