import type { Json, Piece } from '#formats/answer.ts'
import { addCounts, countEntities, type EntityCounts } from '#redaction/entity-counts.ts'
import { type EntityKind, entityKinds } from '#redaction/entity.ts'
import { createPlaceholders } from '#redaction/placeholders.ts'
import { redactInSteps } from '#redaction/text-redactor.ts'
import type { Asker, Steps } from '#text/steps.ts'

import { addArguments, ArgumentsCounter } from './arguments-counter.ts'
import { redactPieces } from './redact-answer.ts'
import { editRequest } from './redact-request.ts'

/** What was found in a call, for its event: how many of each kind, and never a value. */
export type RedactionCounts = {
  readonly replaced: EntityCounts
  /** In sealed reasoning, which was left out. */
  readonly withheld: EntityCounts
  /** In the arguments of tool calls, which were sent as they are. */
  readonly passed: EntityCounts
}

/** A text as those may see it who are asked about it outside of this process. */
export type HideText = (text: string) => Steps<string>

/** Redacts one call: its request, what others are asked about it, and its answer. */
export class CallRedaction {
  readonly #placeholders = createPlaceholders()
  readonly #withheld = new Map<EntityKind, number>()
  readonly #passed = new Map<EntityKind, number>()
  /** The texts of the request with what became of them. */
  readonly #redacted = new Map<string, string>()

  get counts(): RedactionCounts {
    return {
      replaced: this.#placeholders.counts,
      withheld: this.#withheld,
      passed: this.#passed,
    }
  }

  /** The request as it may be sent; null where it may be sent as it is. */
  *redactRequest(body: Json): Steps<Json | null> {
    const redacted = yield* editRequest(body, {
      redact: (text) => this.#redact(text),
      mustWithhold: (text) => this.#mustWithhold(text),
      notePassed: (json) => this.#notePassed(json),
    })
    const isSame = this.#placeholders.counts.size === 0 && this.#withheld.size === 0
    return isSame ? null : redacted
  }

  /** What is hidden is not counted, and its placeholders are numbered on their own where it is no text of the request. */
  readonly hide: HideText = (text) => this.#hide(text)

  /** Called when the texts of the request have been hidden: they may be large. */
  forgetRequest() {
    this.#redacted.clear()
  }

  /** A text that the caller gets besides the answer. */
  redactText(text: string): Steps<string> {
    return redactInSteps(text, this.#placeholders)
  }

  redactAnswer(pieces: AsyncIterable<Piece>, asker: Asker): AsyncGenerator<Piece> {
    const [withheld, passed] = [this.#withheld, this.#passed]
    return redactPieces(pieces, { placeholders: this.#placeholders, withheld, passed }, asker)
  }

  *#hide(text: string): Steps<string> {
    return this.#redacted.get(text) ?? (yield* redactInSteps(text, createPlaceholders()))
  }

  *#redact(text: string): Steps<string> {
    const redacted = yield* redactInSteps(text, this.#placeholders)
    this.#redacted.set(text, redacted)
    return redacted
  }

  *#mustWithhold(text: string): Steps<boolean> {
    const found = yield* countEntities(text)
    addCounts(this.#withheld, found)
    return found.size > 0
  }

  *#notePassed(json: string): Steps<void> {
    const counter = new ArgumentsCounter(this.#passed)
    yield* addArguments(counter, json)
    counter.end()
  }
}

/** The kinds that were found, in a fixed order. */
export const describeRedaction = ({ replaced, withheld, passed }: RedactionCounts) =>
  entityKinds
    .map((type) => ({
      type,
      replaced: replaced.get(type) ?? 0,
      withheld: withheld.get(type) ?? 0,
      passed: passed.get(type) ?? 0,
    }))
    .filter((each) => each.replaced + each.withheld + each.passed > 0)
