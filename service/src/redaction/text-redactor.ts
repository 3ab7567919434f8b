import { normalise, Normaliser } from '#text/normalise.ts'
import { finish, type Steps } from '#text/steps.ts'

import { EntityScanner } from './entity-scanner.ts'
import type { EntityKind } from './entity.ts'
import type { Placeholders } from './placeholders.ts'

/**
 * Replaces the entities of a text that may come in pieces; what comes out, all together, does not depend on them. The scanner
 * reads the text normalised, so that invisible and look-alike characters hide nothing; the rest of the text is unchanged.
 */
export class TextRedactor {
  readonly #placeholders: Placeholders
  readonly #normaliser = new Normaliser()
  readonly #scanner: EntityScanner
  /** The original text from #base on, which has not left. */
  #text = ''
  #base = 0
  #output = ''
  #open: { kind: EntityKind; start: number; end: number } | null = null

  constructor(placeholders: Placeholders) {
    this.#placeholders = placeholders
    this.#scanner = new EntityScanner({
      begin: (kind, start) => {
        this.#replaceOpen()
        this.#open = { kind, start, end: Infinity }
        this.#release(this.#normaliser.originalOffset(start))
      },
      end: (end) => {
        if (this.#open) this.#open.end = end
      },
    })
  }

  /** Characters that have not left and may still do so. */
  get held(): number {
    return this.#open ? 0 : this.#text.length
  }

  /** More of the text; returns what of it is final. */
  push(piece: string): string {
    this.#text += piece
    this.#scanner.read(this.#normaliser.push(piece))
    return this.#take()
  }

  /** The text is over; returns the rest. */
  end(): string {
    this.#scanner.read(this.#normaliser.end())
    this.#scanner.end()
    this.#replaceOpen()
    this.#release(this.#base + this.#text.length)
    return this.#take()
  }

  #take(): string {
    // Only the next character says where in the original an entity ends: invisible characters may follow it.
    if (this.#open && this.#open.end < this.#normaliser.length) this.#replaceOpen()
    const needed = this.#open ? this.#open.start : this.#scanner.settled
    if (!this.#open) this.#release(this.#normaliser.originalOffset(needed))
    this.#normaliser.forget(needed)
    const output = this.#output
    this.#output = ''
    return output
  }

  #release(offset: number) {
    this.#output += this.#drop(offset)
  }

  /** Removes the text before an offset, and returns it. */
  #drop(offset: number): string {
    const length = Math.max(0, offset - this.#base)
    const dropped = this.#text.slice(0, length)
    this.#text = this.#text.slice(length)
    this.#base += length
    return dropped
  }

  #replaceOpen() {
    if (!this.#open) return
    const { kind, end } = this.#open
    this.#open = null
    const value = this.#drop(this.#originalEnd(end))
    this.#output += this.#placeholders.replace(kind, normalise(value).text)
  }

  /** One original character may be several of the normalised text. It is replaced if any of them is. */
  #originalEnd(end: number): number {
    const last = this.#normaliser.originalOffset(end - 1)
    let next = end
    while (next < this.#normaliser.length && this.#normaliser.originalOffset(next) === last) next++
    return this.#normaliser.originalOffset(next)
  }
}

/** How much of a text is read in one step. */
const readAtOnce = 4096

/** More of a text; returns what of it is final. A long piece takes several steps. */
export function* pushInSteps(redactor: TextRedactor, piece: string): Steps<string> {
  if (piece.length <= readAtOnce) return redactor.push(piece)
  let output = ''
  for (let at = 0; at < piece.length; at += readAtOnce) {
    output += redactor.push(piece.slice(at, at + readAtOnce))
    yield
  }
  return output
}

/** Replaces the entities of a complete text. */
export function* redactInSteps(text: string, placeholders: Placeholders): Steps<string> {
  const redactor = new TextRedactor(placeholders)
  return (yield* pushInSteps(redactor, text)) + redactor.end()
}

export const redactText = (text: string, placeholders: Placeholders): string =>
  finish(redactInSteps(text, placeholders))
