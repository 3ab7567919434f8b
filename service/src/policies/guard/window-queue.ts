import type { WindowGrid } from '#text/windows/window-grid.ts'

/** What a scorer is given. `start` and `end` are offsets in the channel's original text, without the overlap. */
export type Window = {
  readonly channel: string
  /** Normalised, with the overlap before it. */
  readonly text: string
  readonly start: number
  readonly end: number
  readonly isLast: boolean
}

/** A window that was not judged by all: what it hits as far as that is known, and why the rest is not. */
export type UnjudgedWindow = { readonly atoms: readonly number[]; readonly error: unknown }
/** Which score atoms a window hits. */
export type WindowVerdict = readonly number[] | UnjudgedWindow

export const isUnjudged = (verdict: WindowVerdict): verdict is UnjudgedWindow => 'error' in verdict

/** The verdicts on these windows, in their order; rejects when the scorer fails at all of them. */
export type ScoreWindows = (
  windows: readonly Window[],
  signal: AbortSignal,
) => Promise<readonly WindowVerdict[]>

/** The scorer cannot answer, as in an outage, which is recorded where the scorer is asked. */
export class ScorerUnavailable extends Error {}

/** What decides about the windows of an answer: scorers that share their windows, or the judge. */
export type WindowScorer = {
  readonly grid: WindowGrid
  readonly scoreWindows: ScoreWindows
  /** The atoms that a window hits, where that is known at once; undefined: it has to be asked for. */
  readonly findKnown?: ((window: Window) => readonly number[] | undefined) | undefined
  /** How many windows are sent together at most. */
  readonly windowsTogether?: number | undefined
}

type Options = {
  scorer: WindowScorer
  now(): number
  /** A window has no verdict, and all that were sent before it have theirs. */
  onFailure(error: unknown): void
}
type Job = {
  readonly window: Window
  /** Of its first new character. */
  readonly order: number
  readonly onVerdict: (verdict: WindowVerdict) => void
}
type Batch = {
  readonly jobs: readonly Job[]
  readonly sentMs: number
  /** The first of its windows that has no verdict. */
  failed?: UnjudgedWindow
}

const batchesMost = 4
/** Scorers that read one text per call are asked about this many side by side: a batch takes them no longer than a window. */
const usualBatchLength = 16
/**
 * From sending on. A window that is not sent yet waits for others, each of which has this time, and their number is bounded:
 * no more text is added while much of it has no verdict.
 */
const waitMostMs = 3000

/** One for all answers: making an error for each that ends would cost more than all else that ends it. */
const answerIsOver = new Error('The answer is over.')

/**
 * Windows on their way to the scorer, the oldest first. Those that became complete while it was busy are sent together. When one
 * of them fails or waits too long, no more are sent, and those that were sent before it still get their verdicts.
 */
export class WindowQueue {
  readonly #options: Options
  /** Made when something is asked: most windows of most answers are known. */
  #abort: AbortController | undefined
  #isStopped = false
  /** Windows without a verdict. */
  readonly #open = new Set<Job>()
  #unsent: Job[] = []
  /** In the order in which they were sent. */
  readonly #sent = new Set<Batch>()
  #timer: NodeJS.Timeout | undefined
  #isFailing = false
  #hasFailed = false

  constructor(options: Options) {
    this.#options = options
  }

  get isWaiting(): boolean {
    return this.#open.size > 0
  }

  /** Whether a verdict will still come about a window that begins there or before. */
  isWaitingAt(order: number): boolean {
    if (this.#hasFailed) return false
    for (const job of this.#open) if (job.order <= order) return true
    return false
  }

  get grid(): WindowGrid {
    return this.#options.scorer.grid
  }

  findKnown(window: Window): readonly number[] | undefined {
    return this.#options.scorer.findKnown?.(window)
  }

  /** A window is complete; `onVerdict` is called later, never at once. */
  push(job: Job) {
    if (this.#isStopped) return
    this.#open.add(job)
    this.#unsent.push(job)
    this.#sendNext()
  }

  /** Aborts what is in flight. No verdict and no failure is reported afterwards. */
  stop() {
    this.#isStopped = true
    clearTimeout(this.#timer)
    if (this.#open.size > 0) this.#abort?.abort(answerIsOver)
    this.#open.clear()
    this.#unsent = []
    this.#sent.clear()
  }

  #sendNext() {
    const { scorer, now } = this.#options
    const { windowsTogether: batchLength = usualBatchLength } = scorer
    while (this.#unsent.length > 0 && this.#sent.size < batchesMost && !this.#isFailing) {
      const batch = { jobs: this.#unsent.splice(0, batchLength), sentMs: now() }
      this.#sent.add(batch)
      this.#timer ??= this.#watch(waitMostMs)
      void this.#score(batch)
    }
  }

  async #score(batch: Batch) {
    try {
      const verdicts = await this.#ask(batch.jobs)
      if (this.#isStopped || this.#hasFailed) return
      const failed = verdicts.find(isUnjudged)
      if (failed) {
        batch.failed = failed
        this.#isFailing = true
      } else this.#sent.delete(batch)
      this.#sendNext()
      this.#report(batch.jobs, verdicts)
      this.#reportFailure()
    } catch (error) {
      if (!this.#isStopped) this.#options.onFailure(error)
    }
  }

  async #ask(jobs: readonly Job[]): Promise<readonly WindowVerdict[]> {
    try {
      const windows = jobs.map(({ window }) => window)
      this.#abort ??= new AbortController()
      const verdicts = await this.#options.scorer.scoreWindows(windows, this.#abort.signal)
      if (verdicts.length === jobs.length) return verdicts
      throw new Error('The scorer has not judged every window.')
    } catch (error) {
      return jobs.map(() => ({ atoms: [], error }))
    }
  }

  /** A window without a verdict goes on waiting for one, until its failure ends the answer. */
  #report(jobs: readonly Job[], verdicts: readonly WindowVerdict[]) {
    for (const [index, job] of jobs.entries()) {
      const verdict = verdicts[index]
      // One that is reported may end the answer, and with it the others.
      if (!verdict || this.#isStopped) return
      if (!isUnjudged(verdict)) this.#open.delete(job)
      job.onVerdict(verdict)
    }
  }

  /** What was sent after the oldest one cannot leave any more, so no verdict on it is waited for. */
  #reportFailure() {
    const [oldest] = this.#sent
    if (!oldest?.failed || this.#isStopped) return
    this.#hasFailed = true
    this.#abort?.abort(answerIsOver)
    this.#options.onFailure(oldest.failed.error)
  }

  #watch(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#checkOldest(), ms).unref()
  }

  #checkOldest() {
    this.#timer = undefined
    const [oldest] = this.#sent
    if (!oldest || this.#hasFailed) return
    const leftMs = oldest.sentMs + waitMostMs - this.#options.now()
    if (leftMs > 0) {
      this.#timer = this.#watch(leftMs)
      return
    }
    oldest.failed = { atoms: [], error: new ScorerUnavailable('the scorer is late') }
    for (const { onVerdict } of oldest.jobs) onVerdict(oldest.failed)
    this.#reportFailure()
  }
}
