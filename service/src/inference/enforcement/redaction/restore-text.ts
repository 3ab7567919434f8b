import { JsonOutline } from '#redaction/json-outline.ts'

/** The placeholders of a request, each with the value that it stands for. */
export type Restoring = {
  readonly spellings: ReadonlyMap<string, string>
  readonly longest: number
  /** Called when a value has been restored in place of this placeholder. */
  onRestored(placeholder: string): void
}

const placeholder = /\[[A-Z]+_\d+\]/g
const begunPlaceholder = /^\[(?:[A-Z]*|[A-Z]+_\d*)$/
const wholeNumber = /^-?(?:0|[1-9]\d*)$/

/**
 * Restores values in a text that may come in pieces. The joined output does not depend on the pieces. In JSON a value is
 * written as JSON. A placeholder that the request does not have stays.
 */
export class TextRestorer {
  readonly #restoring: Restoring
  readonly #outline = new JsonOutline()
  /** The end of the text so far, if it may be the beginning of a placeholder. */
  #begun = ''

  constructor(restoring: Restoring) {
    this.#restoring = restoring
  }

  /** Takes more of the text; returns the part that is final. */
  push(piece: string): string {
    const text = this.#begun + piece
    const begun = this.#findBegun(text)
    this.#begun = text.slice(begun)
    return this.#restore(text.slice(0, begun))
  }

  /** Ends the text; returns the rest. */
  end(): string {
    const rest = this.#begun
    this.#begun = ''
    return this.#restore(rest)
  }

  #findBegun(text: string): number {
    const at = text.lastIndexOf('[')
    const isBegun =
      at >= 0 && text.length - at < this.#restoring.longest && begunPlaceholder.test(text.slice(at))
    return isBegun ? at : text.length
  }

  #restore(text: string): string {
    let written = ''
    let at = 0
    for (const { 0: found, index } of text.matchAll(placeholder)) {
      const value = this.#restoring.spellings.get(found)
      if (value === undefined) continue
      written += this.#pass(text.slice(at, index))
      written += this.#pass(this.#write(value))
      at = index + found.length
      this.#restoring.onRestored(found)
    }
    return written + this.#pass(text.slice(at))
  }

  #write(value: string): string {
    if (this.#outline.isInString) return JSON.stringify(value).slice(1, -1)
    if (!this.#outline.isValuePlace) return value
    return wholeNumber.test(value) ? value : JSON.stringify(value)
  }

  #pass(text: string): string {
    this.#outline.push(text)
    return text
  }
}
