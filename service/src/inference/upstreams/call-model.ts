import type { Piece } from '#formats/answer.ts'
import { fieldTables } from '#formats/fields/field-tables.ts'
import { removeFields } from '#formats/fields/remove-fields.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Cancellable, Cancellation } from '#platform/calls/cancellation.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { OriginPools } from '#platform/origin-pools.ts'

import type { CatalogueModel, Upstream } from './catalogue.ts'
import { type FindRefusedMediaUrl, toMediaUrlError } from './check-media-urls.ts'
import { breakerPauseMs, createHealths } from './health.ts'
import { ModelAnswer, type StartedAnswer } from './model-answer.ts'
import type { ModelCall } from './model-call.ts'
import { openAnswer, type UpstreamAttempt } from './open-answer.ts'
import { lastOpaqueOf, type Sticky } from './sticky.ts'
import { AttemptFailed, TotalTimeout, type UpstreamFailure } from './upstream-failure.ts'

type Deps = {
  pools: OriginPools
  sticky: Sticky
  findRefusedMediaUrl: FindRefusedMediaUrl
  metrics: Metrics
  now: Clock
  /** A random number from 0 to 1: the share of the longest pause to wait before a retry. */
  random?: () => number
}

type Candidate = CatalogueModel['upstreams'][number]

/** The most attempts at each upstream of a model. */
const attemptsMax = 2
const firstPauseMs = 200

/** All attempts of a call share one deadline: the longest that one of its upstreams may take. */
export const longestCallMs = ({ upstreams }: CatalogueModel): number =>
  Math.max(...upstreams.map(({ upstream }) => upstream.totalTimeoutMs))

/**
 * Calls the upstreams of a model in their order. An attempt that fails before its answer has started may be
 * repeated, within the retry budget of the upstream; then the call goes to the next upstream. Once an answer has
 * started, nothing is repeated. A plain answer goes on when its caller hangs up, because the upstream would write
 * and charge it anyway.
 */
export function createModelCalls(deps: Deps) {
  const { pools, sticky, metrics, now, random = Math.random } = deps
  const healthOf = createHealths(now)

  async function attempt(call: ModelCall, sent: UpstreamAttempt) {
    const { breaker } = healthOf(sent.upstream)
    const count = countOutcomes(metrics, sent)
    try {
      const answer = await openAnswer(pools, sent)
      breaker.record(call.organizationId, 'good')
      count('answered')
      return answer
    } catch (error) {
      if (sent.isPlain && sent.mayHaveWritten && isGivenUp(error)) {
        call.onUnseen(sent.upstream.name)
      }
      const failure = error instanceof AttemptFailed ? error.failure : undefined
      if (failure && !isCutShort(failure, sent)) {
        breaker.record(call.organizationId, failure.health)
      }
      count(failure?.error.code ?? 'given_up')
      // The caller has hung up, so there is neither another attempt nor an error to report.
      call.cancellation.throwIfCancelled()
      if (!failure) throw error
      return failure
    }
  }

  async function open(call: ModelCall): Promise<StartedAnswer> {
    let last: UpstreamFailure | undefined
    const endsAtMs = now().getTime() + longestCallMs(call.model)
    for (const candidate of await findCandidates(call, sticky)) {
      const { breaker, budget } = healthOf(candidate.upstream)
      budget.noteCall()
      for (let attempts = 1; attempts <= attemptsMax; attempts++) {
        const leftMs = endsAtMs - now().getTime()
        if (leftMs <= 0 || breaker.isPausing(call.organizationId)) break
        // Checked before `mayTry`, which may claim the probe of an upstream that is out of service: a refused call would waste
        // it.
        const sent = await prepareAttempt(call, candidate, leftMs, deps)
        call.cancellation.throwIfCancelled()
        if (!breaker.mayTry(call.organizationId)) break
        const result = await attempt(call, sent)
        if (!('remedy' in result)) return { ...result, sent }
        last = result
        if (result.remedy === 'final') throw result.error
        if (result.remedy === 'next' || attempts === attemptsMax || !budget.mayRetry()) break
        await pause(random() * firstPauseMs * attempts, call.cancellation)
      }
    }
    throw last?.error ?? noUpstreamAvailable()
  }

  const answering = { open, sticky, metrics }
  return (call: ModelCall): AsyncIterableIterator<Piece> => new ModelAnswer(call, answering)
}
export type CallModel = ReturnType<typeof createModelCalls>

/** Whether the deadline of the call ended an attempt that had little time left after earlier ones. The upstream may be healthy. */
const isCutShort = ({ error }: UpstreamFailure, { upstream, timeoutMs }: UpstreamAttempt) =>
  error.cause instanceof TotalTimeout && timeoutMs < upstream.totalTimeoutMs

/** Whether we ended the attempt, by its deadline or because the process stops, so that it did not fail at the upstream. */
const isGivenUp = (error: unknown) =>
  !(error instanceof AttemptFailed) || error.failure.error.cause instanceof TotalTimeout

/** A turn with opaque state can only go to the upstream that made the state. */
async function findCandidates(
  { model, turn }: ModelCall,
  sticky: Sticky,
): Promise<readonly Candidate[]> {
  if (model.upstreams.length === 1 || lastOpaqueOf(turn) === undefined) return model.upstreams
  const name = await sticky.findUpstream(turn)
  const found = model.upstreams.find(({ upstream }) => upstream.name === name)
  return found ? [found] : model.upstreams.slice(0, 1)
}

/** Rejects when the caller hangs up. */
function pause(ms: number, cancellation: Cancellation): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const caller: Cancellable = { cancel: reject }
  cancellation.add(caller)
  return promise.finally(() => {
    clearTimeout(timer)
    cancellation.remove(caller)
  })
}

const noUpstreamAvailable = () =>
  new ApiError('overloaded', 'No upstream of this model can be reached at the moment.', {
    headers: { 'retry-after': String(breakerPauseMs / 1000) },
  })

const countOutcomes =
  ({ upstreamAttempts }: Metrics, { upstream }: UpstreamAttempt) =>
  (outcome: string) =>
    upstreamAttempts.inc({ upstream: upstream.name, outcome })

/** 400 for a request with a media URL that this upstream may not get. No other upstream is tried then. */
async function prepareAttempt(
  call: ModelCall,
  candidate: Candidate,
  leftMs: number,
  { findRefusedMediaUrl }: Deps,
): Promise<UpstreamAttempt> {
  const attempt = toAttempt(call, candidate, leftMs)
  const refused = await findRefusedMediaUrl(attempt.upstream, attempt.body)
  if (refused) throw toMediaUrlError(refused, call.body)
  return attempt
}

/** An upstream that speaks the caller's format gets the caller's own request and headers. */
function toAttempt(
  call: ModelCall,
  { upstream, model }: Candidate,
  leftMs: number,
): UpstreamAttempt {
  const { callerFormat, turn, maxOutputTokens, cancellation, ending } = call
  const { formats, outputLimitMember } = upstream
  const same = formats.find(({ name, forwardRequest }) => name === callerFormat && forwardRequest)
  const format = same ?? formats[0]
  const isPlain = call.isPlain && format.readPlain !== undefined
  const target = { model, maxOutputTokens, outputLimitMember, isPlain }
  const kept = same && callerFormat && keepFields(callerFormat, call, upstream)
  const forwarded = kept && same.forwardRequest?.(kept.request, target)
  call.onAttempt(kept?.removed ?? [])
  return {
    timeoutMs: Math.min(upstream.totalTimeoutMs, leftMs),
    upstream,
    format,
    model,
    body: forwarded ?? format.writeRequest(turn, target),
    headers: { ...format.headers, ...kept?.headers },
    isPlain,
    mayHaveWritten: false,
    cancellation: isPlain ? ending : cancellation,
  }
}

const keepFields = (
  callerFormat: CallerFormatName,
  { body, headers, model }: ModelCall,
  upstream: Upstream,
) =>
  removeFields(
    fieldTables[callerFormat],
    { request: body, headers },
    {
      passesUnknown: upstream.passesUnknownFields,
      keepsCacheTtl: model.price.cacheWriteHour !== undefined,
    },
  )
