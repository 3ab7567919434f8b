import { setTimeout as sleep } from 'node:timers/promises'

import type { Json, Piece } from '#inference/answer.ts'
import type { Protocol } from '#inference/protocol.ts'
import type { ProtocolName, Turn } from '#inference/turn.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { OriginPools } from '#platform/origin-pools.ts'

import type { CatalogueModel } from './catalogue.ts'
import { breakerPauseMs, createHealths } from './health.ts'
import { type Attempt, AttemptFailed, openAnswer } from './open-answer.ts'
import { lastOpaqueOf, type Sticky } from './sticky.ts'
import { failureOf, type UpstreamFailure } from './upstream-failure.ts'

export type ModelCall = {
  model: CatalogueModel
  /** The caller's own format and request, which an upstream of the same format gets. */
  protocol: Protocol
  request: Json
  turn: Turn
  maxOutputTokens: number
  /** Headers of the caller's that an upstream of the same format understands. */
  headers: Record<string, string>
  signal: AbortSignal
  /** Told once, before the first piece. */
  onAnswering(upstream: string): void
  onPiece(piece: Piece): void
}

type Tools = {
  pools: OriginPools
  protocols: Readonly<Record<ProtocolName, Protocol>>
  sticky: Sticky
  metrics: Metrics
  now: Clock
  /** From 0 to 1, for how long to wait before a retry. */
  random?: () => number
}

type Candidate = CatalogueModel['upstreams'][number]

/** At each upstream of a model. */
export const attemptsMax = 2
const firstPauseMs = 200

/**
 * Asks the upstreams of a model in their order. An attempt that fails before its answer has begun may be
 * repeated, within the upstream's budget, and then goes to the next one; afterwards nothing is repeated.
 */
export function createModelCalls(tools: Tools) {
  const { pools, protocols, sticky, metrics, now, random = Math.random } = tools
  const healthOf = createHealths(now)

  async function attempt(call: ModelCall, candidate: Candidate) {
    const { breaker } = healthOf(candidate.upstream)
    const note = (outcome: string) =>
      metrics.upstreamAttempts.inc({ upstream: candidate.upstream.name, outcome })
    try {
      const answer = await openAnswer(pools, toAttempt(call, candidate, protocols))
      breaker.succeeded()
      note('answered')
      return answer
    } catch (error) {
      if (!(error instanceof AttemptFailed)) {
        note('given_up')
        throw error
      }
      if (error.failure.health === 'bad') breaker.failed()
      if (error.failure.health === 'good') breaker.succeeded()
      note(error.failure.error.code)
      return error.failure
    }
  }

  async function open(call: ModelCall) {
    let last: UpstreamFailure | undefined
    for (const candidate of await candidatesOf(call, sticky)) {
      const { breaker, budget } = healthOf(candidate.upstream)
      budget.noteCall()
      for (let attempts = 1; attempts <= attemptsMax && breaker.mayTry(); attempts++) {
        const result = await attempt(call, candidate)
        if (!('remedy' in result)) return { answer: result, upstream: candidate.upstream }
        last = result
        if (result.remedy === 'final') throw result.error
        if (result.remedy === 'next' || attempts === attemptsMax || !budget.mayRetry()) break
        await pause(random() * firstPauseMs * attempts, call.signal)
      }
    }
    throw last?.error ?? nobodyToAsk()
  }

  return async function* callModel(call: ModelCall): AsyncGenerator<Piece> {
    const { answer, upstream } = await open(call)
    call.onAnswering(upstream.name)
    const isFirst = call.model.upstreams[0]?.upstream === upstream
    try {
      for await (const piece of answer) {
        call.onPiece(piece)
        if (!isFirst) sticky.remember(piece.frames, upstream.name)
        yield piece
      }
    } catch (error) {
      call.signal.throwIfAborted()
      const { error: told } = failureOf(error)
      metrics.upstreamAttempts.inc({ upstream: upstream.name, outcome: 'broken' })
      throw told
    }
  }
}
export type CallModel = ReturnType<typeof createModelCalls>

/** What carries opaque state goes to the upstream that made it, and nowhere else. */
async function candidatesOf(
  { model, turn }: ModelCall,
  sticky: Sticky,
): Promise<readonly Candidate[]> {
  if (model.upstreams.length === 1 || lastOpaqueOf(turn) === undefined) return model.upstreams
  const home = await sticky.homeOf(turn)
  const found = model.upstreams.find(({ upstream }) => upstream.name === home)
  return found ? [found] : model.upstreams.slice(0, 1)
}

/** Ends early when the caller hangs up, with the reason the signal has. */
const pause = (ms: number, signal: AbortSignal) =>
  sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted())

const nobodyToAsk = () =>
  new ApiError('overloaded', 'No upstream of this model can be reached at the moment.', {
    headers: { 'retry-after': String(breakerPauseMs / 1000) },
  })

function toAttempt(
  call: ModelCall,
  { upstream, model }: Candidate,
  protocols: Readonly<Record<ProtocolName, Protocol>>,
): Attempt {
  const { protocol: callers, request, turn, maxOutputTokens, signal } = call
  const isShared = upstream.protocols.includes(callers.name)
  const name = isShared ? callers.name : (upstream.protocols[0] ?? callers.name)
  const protocol = protocols[name]
  const asked = { model, maxOutputTokens, outputLimitMember: upstream.output_limit_member }
  return {
    upstream,
    protocol,
    body: isShared ? callers.forwardRequest(request, asked) : protocol.writeRequest(turn, asked),
    headers: { ...protocol.headers, ...(isShared && call.headers) },
    signal,
  }
}
