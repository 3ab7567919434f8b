/** What is told when something is cancelled; a `Cancellation` can so follow another one. */
export type Cancellable = { cancel(reason: Error): void }

/**
 * Whether a call has been given up, and why. Every call has one and checks it often: an `AbortController` with its
 * signal and its events would cost several times as much.
 */
export class Cancellation implements Cancellable {
  #reason: Error | undefined
  #followers: Set<Cancellable> | undefined
  #controller: AbortController | undefined

  /** Undefined until it is cancelled. */
  get reason(): Error | undefined {
    return this.#reason
  }

  get isCancelled(): boolean {
    return this.#reason !== undefined
  }

  throwIfCancelled() {
    if (this.#reason) throw this.#reason
  }

  /** Tells every follower, once. Only the first reason counts. */
  cancel(reason: Error) {
    if (this.#reason) return
    this.#reason = reason
    const followers = this.#followers
    this.#followers = undefined
    if (followers) for (const follower of followers) follower.cancel(reason)
    this.#controller?.abort(reason)
  }

  /** Tells the follower at once if it is cancelled already. A follower that no longer needs it must be removed. */
  add(follower: Cancellable) {
    if (this.#reason) follower.cancel(this.#reason)
    else (this.#followers ??= new Set()).add(follower)
  }

  remove(follower: Cancellable) {
    this.#followers?.delete(follower)
  }

  /** How many would be told. */
  get followers(): number {
    return this.#followers?.size ?? 0
  }

  /** For interfaces that need a signal: it is made only where one is asked for. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#reason) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }
}

/** A cancellation that follows a signal. */
export function cancellationOf(signal: AbortSignal): Cancellation {
  const cancellation = new Cancellation()
  const follow = () => cancellation.cancel(signal.reason as Error)
  if (signal.aborted) follow()
  else signal.addEventListener('abort', follow, { once: true })
  return cancellation
}

/** A cancellation that follows a signal for one of its calls: the signal of a long answer must not gather all of them. */
export function followSignal(signal: AbortSignal) {
  const cancellation = new Cancellation()
  const follow = () => cancellation.cancel(signal.reason as Error)
  if (signal.aborted) follow()
  else signal.addEventListener('abort', follow, { once: true })
  return { cancellation, [Symbol.dispose]: () => signal.removeEventListener('abort', follow) }
}
