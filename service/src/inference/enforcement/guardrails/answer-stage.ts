import type { AnswerEvent } from '#formats/answer.ts'
import type { TextEdit } from '#moderation/guardrails/text-edits.ts'
import type { ApiError } from '#platform/api-error.ts'

import type { AnswerBlock } from './answer-block.ts'
import { AnswerBlocks } from './answer-blocks.ts'
import type { AnswerWindow } from './answer-windows.ts'

/** What one guardrail has decided about a window. */
export type WindowDecision =
  | { readonly kind: 'pass' }
  | { readonly kind: 'end'; toError(): ApiError }
  | {
      readonly kind: 'rewrite'
      readonly edits: readonly TextEdit[]
      /** What follows where that cannot be done; null: the text stays as it is. */
      onUnwritable(failure: unknown): ApiError | null
    }

/** Asks all guardrails about a window; their decisions are in their order. */
export type DecideWindow = (window: AnswerWindow) => Promise<readonly WindowDecision[]>

type Asked = {
  readonly block: AnswerBlock
  readonly window: AnswerWindow
  decisions: Promise<readonly WindowDecision[]> | null
}

/** An event waits for everything before it; so does the text of a block up to some place. */
type Waiting =
  | { readonly event: AnswerEvent }
  | { readonly index: number; readonly block: AnswerBlock; upTo: number }

/** How many windows guardrails are asked about at once. */
const askedAtOnce = 4
/** Then no more of the answer is read until some of them are decided. */
const waitingMost = 16

/**
 * An answer while guardrails decide about it. Decisions are applied in the order of the windows, whenever they come, so that what
 * leaves depends on the text alone; and events leave in the order in which they came.
 */
export class AnswerStage {
  readonly #decide: DecideWindow
  readonly #blocks: AnswerBlocks
  readonly #windows: Asked[] = []
  readonly #waiting: Waiting[] = []
  #error: ApiError | null = null

  constructor(decide: DecideWindow, prefill: string) {
    this.#decide = decide
    this.#blocks = new AnswerBlocks(prefill, (block, window) => {
      this.#windows.push({ block, window, decisions: null })
    })
  }

  /** Why the answer ends, once everything before that has been taken. */
  get error(): ApiError | null {
    return this.#error
  }

  get isFull(): boolean {
    return this.#windows.length >= waitingMost
  }

  /** Resolves when the next window can be applied; null where none is waited for. */
  get nextDecisions(): Promise<readonly WindowDecision[]> | null {
    return this.#windows[0]?.decisions ?? null
  }

  add(events: readonly AnswerEvent[]) {
    for (const event of events) this.#addEvent(event)
    this.#askNext()
  }

  /** Nothing follows. */
  end() {
    this.#blocks.end()
    this.#askNext()
  }

  /** Applies what was decided about the next window. */
  apply(decisions: readonly WindowDecision[]) {
    const asked = this.#windows.shift()
    if (!asked || this.#error) return
    for (const decision of decisions) {
      this.#error = applyDecision(asked, decision)
      if (this.#error) return
    }
    asked.block.finish(asked.window)
    this.#askNext()
  }

  /** What may leave now. */
  take(): AnswerEvent[] {
    const left: AnswerEvent[] = []
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      if ('event' in next) left.push(next.event)
      else {
        const { index, block, upTo } = next
        const text = block.take(upTo)
        if (text !== '') left.push({ type: 'block_delta', index, text })
        if (!block.hasLeft(upTo)) break
      }
      this.#waiting.shift()
    }
    return left
  }

  #addEvent(event: AnswerEvent) {
    const block = this.#blocks.read(event)
    if (event.type !== 'block_delta') {
      this.#waiting.push({ event })
      return
    }
    // A delta of no block says nothing that a caller could get.
    if (!block) return
    const { index } = event
    const last = this.#waiting.at(-1)
    if (last && 'block' in last && last.block === block) last.upTo = block.length
    else this.#waiting.push({ index, block, upTo: block.length })
  }

  #askNext() {
    if (this.#error) return
    for (const asked of this.#windows.slice(0, askedAtOnce)) {
      asked.decisions ??= this.#decide(asked.window)
      // The code that awaits it handles the failure, if there is any.
      asked.decisions.catch(() => undefined)
    }
  }
}

function applyDecision({ block, window }: Asked, decision: WindowDecision): ApiError | null {
  switch (decision.kind) {
    case 'pass':
      return null
    case 'end':
      return decision.toError()
    case 'rewrite':
      try {
        block.rewrite(window, decision.edits)
        return null
      } catch (failure) {
        return decision.onUnwritable(failure)
      }
  }
}
