import type { Json, Piece } from '#formats/answer.ts'
import { parseExact } from '#platform/exact-json.ts'
import type { Asker, Steps } from '#platform/steps/steps.ts'
import { addCounts, addOne, countEntities, type EntityCounts } from '#redaction/entity-counts.ts'
import { entityHold, type EntityKind, entityKinds, isEntityKind } from '#redaction/entity.ts'
import { createPlaceholders } from '#redaction/placeholders.ts'
import { redactText, writePlaceholder } from '#redaction/text-redactor.ts'

import { countArguments, ArgumentsCounter } from './arguments-counter.ts'
import { findValuesTogether, type TextPiece } from './joined-texts.ts'
import { redactPieces } from './redact-answer.ts'
import { editRequest } from './redact-request.ts'
import { restorePieces } from './restore-answer.ts'
import type { Restoring } from './restore-text.ts'

/** What was found in a call, for its event: counts by kind, and never a value. */
export type RedactionCounts = {
  readonly replaced: EntityCounts
  /** Found in sealed reasoning, which was left out. */
  readonly withheld: EntityCounts
  /** Found in the arguments of tool calls, which were sent unchanged. */
  readonly passed: EntityCounts
  /** Restored in the answer; null if nothing is restored. */
  readonly restored: EntityCounts | null
}

/** Redacts a text for scorers and the judge, which are outside of this process. */
export type HideText = (text: string) => Steps<string>

/**
 * Stands for a text of which nothing is left, because it was only the end of a value: providers refuse empty messages and
 * parts.
 */
const emptied = '\u2026'

/** Redacts one call: its request, the texts that scorers and the judge see, and its answer. */
export class CallRedaction {
  readonly #placeholders = createPlaceholders()
  readonly #withheld = new Map<EntityKind, number>()
  readonly #passed = new Map<EntityKind, number>()
  readonly #restored: Map<EntityKind, number> | null
  /**
   * The placeholders of the request, once it is redacted. Values that appear only in the answer were never the caller's, so
   * they are not restored.
   */
  #spellings: ReadonlyMap<string, string> = new Map()
  /** The texts of the request, each with its redacted form. */
  readonly #redacted = new Map<string, string>()

  /** `restores`: whether the caller gets its own values back. */
  constructor({ restores = false } = {}) {
    this.#restored = restores ? new Map() : null
  }

  /** How many characters of an answer are held back at most. */
  get hold(): number {
    return entityHold + this.#longestPlaceholder()
  }

  get counts(): RedactionCounts {
    return {
      replaced: this.#placeholders.counts,
      withheld: this.#withheld,
      passed: this.#passed,
      restored: this.#restored,
    }
  }

  /** The request as it may be sent; null if it may be sent unchanged. */
  *redactRequest(body: Json): Steps<Json | null> {
    const redacted = yield* editRequest(body, {
      redact: (text) => this.#redact(text),
      readTogether: findValuesTogether,
      write: (text, pieces) => this.#write(text, pieces),
      redactName: (name) => this.#redactName(name),
      mustWithhold: (text) => this.#mustWithhold(text),
      editArguments: (value) =>
        this.#restored ? this.#redactArguments(value) : this.#passArguments(value),
    })
    if (this.#restored) this.#spellings = new Map(this.#placeholders.spellings)
    const isSame = this.#placeholders.counts.size === 0 && this.#withheld.size === 0
    return isSame ? null : redacted
  }

  /**
   * Redacts a text for scorers and the judge. Its findings are not counted. Values of the request get the placeholders of the
   * call, other values get their own.
   */
  readonly hide: HideText = (text) => this.#hide(text)

  /** Drops the texts of the request, which may be large, once all of them have been redacted. */
  forgetRequest() {
    this.#redacted.clear()
  }

  /** Redacts a text that the caller gets besides the answer. */
  redactText(text: string): Steps<string> {
    return redactText(text, this.#placeholders)
  }

  redactAnswer(pieces: AsyncIterable<Piece>, asker: Asker): AsyncGenerator<Piece> {
    const [withheld, passed] = [this.#withheld, this.#passed]
    return redactPieces(pieces, { placeholders: this.#placeholders, withheld, passed }, asker)
  }

  /** Puts the caller's own values back, when everything else has been done with the answer. */
  restoreAnswer(pieces: AsyncIterable<Piece>): AsyncIterable<Piece> {
    const restoring = this.#openRestoring()
    return restoring ? restorePieces(pieces, restoring) : pieces
  }

  #openRestoring(): Restoring | null {
    const restored = this.#restored
    if (!restored || this.#spellings.size === 0) return null
    return {
      spellings: this.#spellings,
      longest: this.#longestPlaceholder(),
      onRestored: (placeholder) => {
        const kind = placeholder.slice(1, placeholder.indexOf('_'))
        if (isEntityKind(kind)) addOne(restored, kind)
      },
    }
  }

  #longestPlaceholder(): number {
    let longest = 0
    for (const { length } of this.#spellings.keys()) longest = Math.max(longest, length)
    return longest
  }

  *#hide(text: string): Steps<string> {
    return this.#redacted.get(text) ?? (yield* redactText(text, this.#placeholders.fork()))
  }

  *#redact(text: string): Steps<string> {
    const redacted = yield* redactText(text, this.#placeholders)
    this.#note(text, redacted)
    return redacted
  }

  #write(text: string, pieces: readonly TextPiece[]): string {
    const written = pieces
      .map((piece) =>
        typeof piece === 'string' ? piece : writePlaceholder(this.#placeholders, piece),
      )
      .join('')
    const isEmptied = written.trim() === '' && text.trim() !== ''
    const left = isEmptied ? emptied : written
    this.#note(text, left)
    return left
  }

  /** The same text may appear elsewhere without the neighbour that makes it a part of a value. */
  #note(text: string, redacted: string) {
    const known = this.#redacted.get(text) ?? text
    if (known === text) this.#redacted.set(text, redacted)
  }

  *#redactName(name: string): Steps<string> {
    const redacted = yield* redactText(name, this.#placeholders)
    return redacted === name ? name : redacted.replaceAll(/\[([A-Z]+_\d+)\]/g, '$1')
  }

  *#mustWithhold(text: string): Steps<boolean> {
    const found = yield* countEntities(text)
    addCounts(this.#withheld, found)
    return found.size > 0
  }

  /**
   * Redacts the arguments of earlier calls, which the model wrote with placeholders and the caller sends back with values. The
   * result is still JSON.
   */
  *#redactArguments(value: unknown): Steps<unknown> {
    if (typeof value === 'string') return yield* this.#redact(value)
    const json = JSON.stringify(value)
    const redacted = yield* this.#redact(json)
    return redacted === json ? value : parseExact(redacted)
  }

  *#passArguments(value: unknown): Steps<unknown> {
    const counter = new ArgumentsCounter(this.#passed)
    yield* countArguments(counter, typeof value === 'string' ? value : JSON.stringify(value))
    counter.end()
    return value
  }
}

/** The kinds that were found, in a fixed order. */
export const describeRedaction = ({ replaced, withheld, passed, restored }: RedactionCounts) =>
  entityKinds
    .map((type) => ({
      type,
      replaced: replaced.get(type) ?? 0,
      withheld: withheld.get(type) ?? 0,
      passed: passed.get(type) ?? 0,
      ...(restored && { restored: restored.get(type) ?? 0 }),
    }))
    .filter((each) => each.replaced + each.withheld + each.passed > 0)
