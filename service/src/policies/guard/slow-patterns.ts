import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { FoundPattern, SearchElsewhere } from '#text/pattern-set.ts'

type Options = {
  elsewhere: SearchElsewhere
  /** Whose share of the threads is used. */
  owner: string
  onFailure(error: unknown): void
}

const answerIsOver = new Error('The answer is over.')

/** Searches of one answer for patterns that would hold up the event loop: they are done elsewhere, and their results come later. */
export class SlowPatterns {
  readonly #options: Options
  readonly #abort = new AbortController()
  #open = 0
  #isStopped = false

  constructor(options: Options) {
    this.#options = options
  }

  /** Null where no rule asks for patterns, or where they are quick. */
  static of(
    { elsewhere }: Pick<AnswerRules, 'elsewhere'>,
    asked: ReadonlySet<number>,
    { owner, onUnexpected }: { owner?: string; onUnexpected?(error: unknown): void },
    onFailure: (error: unknown) => void,
  ): SlowPatterns | null {
    if (owner === undefined || asked.size === 0 || !elsewhere?.isNeeded) return null
    return new SlowPatterns({
      elsewhere,
      owner,
      onFailure(error) {
        onUnexpected?.(error)
        onFailure(error)
      },
    })
  }

  get isWaiting(): boolean {
    return this.#open > 0
  }

  /** `onFound` is called later, never at once; not at all if the search fails or the answer is over. */
  search(text: string, from: number, onFound: (found: readonly FoundPattern[]) => void) {
    if (this.#isStopped) return
    this.#open++
    void this.#search(text, from, onFound)
  }

  /** No result and no failure is reported afterwards. */
  stop() {
    this.#isStopped = true
    if (this.#open > 0) this.#abort.abort(answerIsOver)
    this.#open = 0
  }

  async #search(
    text: string,
    from: number,
    onFound: (found: readonly FoundPattern[]) => void,
  ): Promise<void> {
    const { elsewhere, owner, onFailure } = this.#options
    try {
      const asker = { owner, signal: this.#abort.signal }
      const found = await elsewhere.findFirst(text, from, asker)
      if (this.#isStopped) return
      this.#open--
      onFound(found)
    } catch (error) {
      if (!this.#isStopped) onFailure(error)
    }
  }
}
