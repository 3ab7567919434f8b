import type { Json, Piece } from '#formats/answer.ts'
import { parseExact } from '#platform/exact-json.ts'
import { addCounts, addOne, countEntities, type EntityCounts } from '#redaction/entity-counts.ts'
import { entityHold, type EntityKind, entityKinds, isEntityKind } from '#redaction/entity.ts'
import { createPlaceholders } from '#redaction/placeholders.ts'
import { redactInSteps, writePlaceholder } from '#redaction/text-redactor.ts'
import type { Asker, Steps } from '#text/steps.ts'

import { countArguments, ArgumentsCounter } from './arguments-counter.ts'
import { findValuesTogether, type TextPiece } from './joined-texts.ts'
import { redactPieces } from './redact-answer.ts'
import { editRequest } from './redact-request.ts'
import { restorePieces } from './restore-answer.ts'
import type { Restoring } from './restore-text.ts'

/** What was found in a call, for its event: how many of each kind, and never a value. */
export type RedactionCounts = {
  readonly replaced: EntityCounts
  /** In sealed reasoning, which was left out. */
  readonly withheld: EntityCounts
  /** In the arguments of tool calls, which were sent as they are. */
  readonly passed: EntityCounts
  /** Put back into the answer; null where nothing is to be. */
  readonly restored: EntityCounts | null
}

/** A text as those may see it who are asked about it outside of this process. */
export type HideText = (text: string) => Steps<string>

/** What is left of a text that was nothing but the end of a value: providers refuse messages and parts without any. */
const emptied = '\u2026'

/** Redacts one call: its request, what others are asked about it, and its answer. */
export class CallRedaction {
  readonly #placeholders = createPlaceholders()
  readonly #withheld = new Map<EntityKind, number>()
  readonly #passed = new Map<EntityKind, number>()
  readonly #restored: Map<EntityKind, number> | null
  /** Of the request, once it is redacted: what the answer has besides was never the caller's. */
  #spellings: ReadonlyMap<string, string> = new Map()
  /** The texts of the request with what became of them. */
  readonly #redacted = new Map<string, string>()

  /** `restores`: the caller gets its own values back. */
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

  /** The request as it may be sent; null where it may be sent as it is. */
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

  /** What is hidden is not counted. It has the placeholders of the call, and its own for what is nowhere else. */
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
    return this.#redacted.get(text) ?? (yield* redactInSteps(text, this.#placeholders.fork()))
  }

  *#redact(text: string): Steps<string> {
    const redacted = yield* redactInSteps(text, this.#placeholders)
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

  /** The same text may stand elsewhere without what makes it a part of a value. */
  #note(text: string, redacted: string) {
    const known = this.#redacted.get(text) ?? text
    if (known === text) this.#redacted.set(text, redacted)
  }

  *#redactName(name: string): Steps<string> {
    const redacted = yield* redactInSteps(name, this.#placeholders)
    return redacted === name ? name : redacted.replaceAll(/\[([A-Z]+_\d+)\]/g, '$1')
  }

  *#mustWithhold(text: string): Steps<boolean> {
    const found = yield* countEntities(text)
    addCounts(this.#withheld, found)
    return found.size > 0
  }

  /** What the model has asked tools for with placeholders, the caller sends back with values. It stays JSON. */
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
