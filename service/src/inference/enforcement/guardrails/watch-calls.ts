import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import type { GuardrailQuestion } from '#moderation/guardrails/question.ts'

import type { AskingForCall } from './ask-guardrails.ts'

type Watched = Pick<GuardrailQuestion, 'direction' | 'texts' | 'isLast'>

/** How many questions to one monitoring guardrail are open for a call; the others wait. */
const askedAtOnce = 4
/** A longer answer is not watched to its end. */
const waitingMost = 1024

/** The questions of a call to a guardrail that only monitors: nothing waits for them but the event. */
export class GuardrailWatch {
  readonly #guardrail: Guardrail
  readonly #asking: AskingForCall
  readonly #aborting = new AbortController()
  #waiting: Watched[] = []
  readonly #open = new Set<Promise<void>>()

  constructor(guardrail: Guardrail, asking: AskingForCall) {
    this.#guardrail = guardrail
    this.#asking = asking
  }

  /** Never throws. */
  ask(watched: Watched) {
    if (this.#waiting.length < waitingMost) this.#waiting.push(watched)
    this.#askNext()
  }

  /** Waits for what is open, as long as one question may take; what has no answer then has failed. */
  async settle(): Promise<void> {
    const timer = setTimeout(() => this.#giveUp(), this.#guardrail.deadlineMs)
    try {
      while (this.#open.size > 0) await Promise.all(this.#open)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The answers are not needed. */
  stop() {
    this.#waiting = []
    this.#aborting.abort(new Error('The call is over.'))
  }

  #giveUp() {
    const [unanswered] = this.#waiting
    const direction = unanswered?.direction ?? 'response'
    this.stop()
    const failure = new GuardrailFailure('late', 'The guardrail was late for the end of the call.')
    const { deadlineMs } = this.#guardrail
    const outcome = { kind: 'failed', failure } as const
    this.#asking.report(this.#guardrail, direction, { outcome, tookMs: deadlineMs })
  }

  #askNext() {
    while (this.#open.size < askedAtOnce) {
      const next = this.#waiting.shift()
      if (!next) return
      const asked = this.#put(next).finally(() => {
        this.#open.delete(asked)
        this.#askNext()
      })
      this.#open.add(asked)
    }
  }

  async #put(watched: Watched) {
    const { direction } = watched
    try {
      const verdict = await this.#asking.ask(this.#guardrail, watched, this.#aborting.signal)
      this.#asking.report(this.#guardrail, direction, verdict)
    } catch {
      // It is over, or the organization has had too much asked.
      if (this.#aborting.signal.aborted) return
      const failure = new GuardrailFailure('overloaded', 'Too many questions in this minute.')
      const outcome = { kind: 'failed', failure } as const
      this.#asking.report(this.#guardrail, direction, { outcome, tookMs: 0 })
    }
  }
}
