import type { Piece, PieceSource, TakePiece } from '#formats/answer.ts'
import type { Metrics } from '#platform/metrics.ts'

import type { Upstream } from './catalogue.ts'
import type { ModelCall } from './model-call.ts'
import type { OpenAnswer, UpstreamAttempt } from './open-answer.ts'
import type { PieceReader } from './read-pieces.ts'
import type { Sticky } from './sticky.ts'
import { toFailure } from './upstream-failure.ts'

/** An answer that has started, and the request that was sent for it. */
export type StartedAnswer = OpenAnswer & { sent: Pick<UpstreamAttempt, 'upstream' | 'isPlain'> }

type Deps = {
  /** Calls upstreams until one answers. */
  open(call: ModelCall): Promise<StartedAnswer>
  sticky: Pick<Sticky, 'remember'>
  metrics: Pick<Metrics, 'upstreamAttempts'>
}

/**
 * The pieces of an answer. The first `next` makes the call. This is no generator, because that would cost microtasks for every
 * piece.
 */
export class ModelAnswer implements AsyncIterableIterator<Piece>, PieceSource {
  readonly #call: ModelCall
  readonly #deps: Deps
  #started: StartedAnswer | undefined

  constructor(call: ModelCall, deps: Deps) {
    this.#call = call
    this.#deps = deps
  }

  async next(): Promise<IteratorResult<Piece, undefined>> {
    const started = this.#started
    const piece = started ? await this.#readNext(started) : await this.#start()
    if (this.#started?.sent.isPlain && this.#call.cancellation.isCancelled) {
      await this.#readUnwanted(this.#started, piece)
    }
    return piece ? { done: false, value: piece } : { done: true, value: undefined }
  }

  async readWhile(take: TakePiece): Promise<boolean> {
    for (;;) {
      const started = this.#started
      if (started?.reader && !started.sent.isPlain) {
        return this.#passOn(started.reader, started.sent.upstream, take)
      }
      const next = await this.next()
      if (next.done) return true
      if (!take(next.value)) return false
    }
  }

  async return(): Promise<IteratorResult<Piece, undefined>> {
    this.#started?.reader?.close()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator]() {
    return this
  }

  async #start(): Promise<Piece> {
    const started = await this.#deps.open(this.#call)
    this.#started = started
    const { upstream } = started.sent
    this.#call.onAnswering(upstream.name)
    this.#observe(started.first, upstream)
    return started.first
  }

  /** The caller of a plain answer has hung up: the answer is metered to its end, and is sent to no caller. */
  async #readUnwanted(started: StartedAnswer, first: Piece | undefined) {
    for (let piece = first; piece; piece = await this.#readNext(started));
    this.#call.cancellation.throwIfCancelled()
  }

  async #readNext({ reader, sent: { upstream } }: StartedAnswer): Promise<Piece | undefined> {
    if (!reader) return undefined
    const piece = await this.#reading(() => reader.read())
    if (piece) this.#observe(piece, upstream)
    return piece
  }

  #passOn(reader: PieceReader, upstream: Upstream, take: TakePiece): Promise<boolean> {
    return this.#reading(() =>
      reader.readWhile((piece) => {
        this.#observe(piece, upstream)
        return take(piece)
      }),
    )
  }

  async #reading<Result>(read: () => Promise<Result>): Promise<Result> {
    try {
      return await read()
    } catch (error) {
      this.#started?.reader?.close()
      this.#call.cancellation.throwIfCancelled()
      const upstream = this.#started?.sent.upstream.name ?? ''
      this.#deps.metrics.upstreamAttempts.inc({ upstream, outcome: 'broken' })
      throw toFailure(error).error
    }
  }

  #observe(piece: Piece, upstream: Upstream) {
    this.#call.onPiece(piece)
    const isFirstUpstream = this.#call.model.upstreams[0]?.upstream === upstream
    if (!isFirstUpstream) this.#deps.sticky.remember(piece.frames, upstream.name)
  }
}
