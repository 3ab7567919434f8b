import type { EndOutcome } from './guard-end.ts'
import type { WindowScorer } from './window-queue.ts'

export type GuardOptions = {
  /** Those that the rules need. A character leaves when the windows of all of them have passed it. */
  scorers?: readonly WindowScorer[]
  /** Whose share of the threads is used where patterns are looked for elsewhere. Without it they are looked for here. */
  owner?: string
  /** Whether a view joins words that stand apart. */
  joinsWords?(channel: string): boolean
  now(): number
  /** A verdict that came later changed what is cleared, made room for more text, or ended the answer. */
  onChange?(): void
  /** A window could not be judged, and no outage of the scorer is the cause. */
  onUnexpected?(error: unknown): void
  /** Evaluates the rules without a formula on the whole answer, which is over. Rejects where that cannot be done. */
  evaluateAtEnd(): Promise<readonly EndOutcome[]>
}
