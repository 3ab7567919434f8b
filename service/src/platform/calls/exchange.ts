import type { Dispatcher } from 'undici'

import type { Cancellable, Cancellation } from './cancellation.ts'
import { type WheelDeadline, startDeadline, type Timed } from './timer-wheel.ts'

export type OriginRequest = {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body: string | Buffer
  cancellation: Cancellation
  /** How long everything may take, to the last byte of the answer. */
  timeoutMs: number
  /** The error that the request fails with then. */
  createTimeout: () => Error
  /** Its answer may be silent for all of that time, whatever the settings of the origin say. */
  isSilent?: boolean
}

export type AnswerHeaders = Record<string, string | string[] | undefined>

/**
 * Gets an answer as it arrives: its head, its bytes, its end. A failure may come at any time before the end, also before
 * the start. Nothing follows the end or a failure, and each comes once.
 */
export type AnswerReceiver = {
  /** Called before the request is sent. */
  onStart(exchange: Exchange): void
  /** Called when the request has a connection: from here on the origin may have got it. */
  onSent(): void
  onHead(status: number, headers: AnswerHeaders): void
  onBytes(bytes: Buffer): void
  onEnd(): void
  onFailure(error: Error): void
}

/** The requests of a pool that have a connection, or wait for one to open. */
export type OpenRequests = { count: number }

/**
 * One request and its answer, as undici's own handler: no stream, no signal and no promise is between the connection
 * and the receiver. It ends with the answer, or when it fails, is cancelled or takes too long.
 */
export class Exchange implements Dispatcher.DispatchHandler, Cancellable, Timed {
  readonly #cancellation: Cancellation
  readonly #createTimeout: () => Error
  readonly #receiver: AnswerReceiver
  readonly #open: OpenRequests
  readonly #deadline: WheelDeadline
  readonly #endsAtMs: number
  #controller: Dispatcher.DispatchController | undefined
  #failure: Error | undefined
  #isOver = false
  #hasConnection = true

  constructor(request: OriginRequest, receiver: AnswerReceiver, open: OpenRequests) {
    // Not the request itself: its body would stay in memory as long as the answer takes.
    this.#cancellation = request.cancellation
    this.#createTimeout = request.createTimeout
    this.#receiver = receiver
    this.#open = open
    this.#deadline = startDeadline(request.timeoutMs, this)
    this.#endsAtMs = performance.now() + request.timeoutMs
    open.count++
    receiver.onStart(this)
    request.cancellation.add(this)
  }

  /** Fails the exchange and closes its connection. */
  cancel(reason: Error) {
    if (this.#isOver) return
    this.#failure = reason
    this.#end()
    this.#receiver.onFailure(reason)
    this.#controller?.abort(reason)
  }

  onDue() {
    this.cancel(this.#createTimeout())
  }

  /** No more bytes are read from the connection until `resume`, except those that have arrived. */
  pause() {
    this.#controller?.pause()
  }

  resume() {
    if (this.#controller?.paused) this.#controller.resume()
  }

  /** No caller waits for the rest, so the caller cannot cancel it any more, and it has a deadline of its own. */
  outliveCaller(restMs: number) {
    if (this.#isOver) return
    this.#cancellation.remove(this)
    this.#deadline.restart(restMs)
  }

  /** The rest may take only so long, and no longer than everything. */
  endWithin(restMs: number) {
    if (this.#isOver) return
    this.#deadline.restart(Math.max(0, Math.min(restMs, this.#endsAtMs - performance.now())))
  }

  onRequestStart(controller: Dispatcher.DispatchController) {
    this.#controller = controller
    if (this.#failure) controller.abort(this.#failure) // it was cancelled while the connection was opened
    else this.#receiver.onSent()
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: AnswerHeaders) {
    const isInformational = status < 200
    if (!isInformational) this.#receiver.onHead(status, headers)
  }

  onResponseData(_: Dispatcher.DispatchController, bytes: Buffer) {
    if (!this.#isOver) this.#receiver.onBytes(bytes)
  }

  onResponseEnd() {
    this.#freeConnection()
    if (this.#isOver) return
    this.#end()
    this.#receiver.onEnd()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error) {
    this.#freeConnection()
    if (this.#isOver) return
    this.#end()
    this.#receiver.onFailure(error)
  }

  #freeConnection() {
    if (this.#hasConnection) this.#open.count--
    this.#hasConnection = false
  }

  #end() {
    this.#isOver = true
    this.#deadline.stop()
    this.#cancellation.remove(this)
  }
}
