import type { GuardOptions } from './guard-options.ts'
import { ScorerUnavailable, WindowQueue } from './window-queue.ts'

type Options = Pick<GuardOptions, 'scorers' | 'now' | 'onUnexpected'> & {
  /** A scorer has failed at a window. */
  onFailure(): void
}

/** The windows of an answer on their way to its scorers, and what becomes of the answer where one of them fails. */
export class AnswerWindows {
  readonly queues: readonly WindowQueue[]
  /** A window that starts there has no verdict, and will have none. */
  #unjudgedFrom = Infinity
  #failure: { error: unknown } | null = null

  constructor({ scorers = [], now, onUnexpected, onFailure }: Options) {
    this.queues = scorers.map(
      (scorer) =>
        new WindowQueue({
          scorer,
          now: () => now(),
          onFailure: (error) => {
            if (!(error instanceof ScorerUnavailable)) onUnexpected?.(error)
            this.#failure ??= { error }
            onFailure()
          },
        }),
    )
  }

  get isWaiting(): boolean {
    return this.queues.some(({ isWaiting }) => isWaiting)
  }

  /**
   * Why the answer must end, and from where on nothing may leave. Null while no scorer has failed, and as long as another one can
   * still find, there or before, why the answer is blocked.
   */
  get failure(): { error: unknown; from: number } | null {
    if (!this.#failure) return null
    const from = this.#unjudgedFrom
    return this.queues.some((queue) => queue.isWaitingAt(from)) ? null : { ...this.#failure, from }
  }

  noteUnjudged(order: number) {
    this.#unjudgedFrom = Math.min(this.#unjudgedFrom, order)
  }

  stop() {
    for (const queue of this.queues) queue.stop()
  }
}
