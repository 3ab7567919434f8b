import type { Steps } from '#platform/steps/steps.ts'

import type { Placeholders } from './placeholders.ts'
import { type FoundValue, pushInSteps, ValueFinder } from './value-finder.ts'

/** What takes the place of a value. */
export function writePlaceholder(placeholders: Placeholders, found: FoundValue): string {
  return `${found.quote}${placeholders.replace(found)}${found.quote}`
}

/**
 * Replaces the values of a text that may come in pieces; what comes out, all together, does not depend on them. The rest of
 * the text is unchanged, and JSON stays JSON.
 */
export class TextRedactor {
  readonly #finder: ValueFinder
  #output = ''

  constructor(placeholders: Placeholders) {
    this.#finder = new ValueFinder({
      text: (text) => void (this.#output += text),
      value: (found) => void (this.#output += writePlaceholder(placeholders, found)),
    })
  }

  /** Characters that have not left and may still do so. */
  get held(): number {
    return this.#finder.held
  }

  /** More of the text; returns what of it is final. */
  push(piece: string): string {
    this.#finder.push(piece)
    return this.#take()
  }

  /** The text is over; returns the rest. */
  end(): string {
    this.#finder.end()
    return this.#take()
  }

  #take(): string {
    const output = this.#output
    this.#output = ''
    return output
  }
}

/** Replaces the values of a complete text. */
export function* redactText(text: string, placeholders: Placeholders): Steps<string> {
  const redactor = new TextRedactor(placeholders)
  let output = ''
  yield* pushInSteps({ push: (piece) => void (output += redactor.push(piece)) }, text)
  return output + redactor.end()
}
