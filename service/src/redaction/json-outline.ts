import { classOf, isKeyUnit } from './characters.ts'

/** A number outside of strings, in a text that is JSON so far. */
export type JsonNumber = {
  readonly start: number
  readonly end: number
  /** Null until it is known what follows it. */
  isValue: boolean | null
}

const asciiSpace = classOf(' \t\n\r\f\v')
const isSpace = (unit: number) =>
  asciiSpace(unit) || (unit > 127 && /\s/.test(String.fromCharCode(unit)))
const isWordUnit = (unit: number) => isKeyUnit(unit) || unit === 43 || unit === 46
const isPunctuation = classOf('{}[],:')
const endsValue = classOf(',}]')
const beginsValue = classOf(':,[')
const beginsString = classOf('{:,[')
const [quote, backslash] = [34, 92]
/** Stands for a number or a word. */
const wordMark = 48
const quoteOrBackslash = /["\\]/g
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/** Shorter numbers are nothing that is redacted. */
const numberLeast = 8
const wordMost = 100
/** How much white space may stand between a number and what follows it before it counts as one. */
const spaceMost = 64

/**
 * Follows a text that may be JSON as it grows, as far as is needed to replace something in it: whether a place is inside of a
 * string, and which numbers stand where JSON has a value. A text is JSON so far if it begins with `{` or `[` and has nothing
 * outside of strings that JSON does not have.
 */
export class JsonOutline {
  #state: 'start' | 'between' | 'word' | 'string' | 'escape' | 'prose' = 'start'
  /** Units that have been read. */
  #at = 0
  #word = ''
  /** The last character between values that is no white space. */
  #mark = 0
  #spaces = 0
  #numbers: JsonNumber[] = []
  #undecided: JsonNumber | null = null

  get isInString(): boolean {
    return this.#state === 'string' || this.#state === 'escape'
  }

  /** Whether JSON would have a value here. */
  get isValuePlace(): boolean {
    return this.#state === 'between' && beginsValue(this.#mark)
  }

  /** The number that a value is, or is a part of. */
  findNumber(start: number, end: number): JsonNumber | undefined {
    return this.#numbers.find((one) => one.start <= start && end <= one.end)
  }

  push(piece: string): void {
    if (this.#state === 'prose') {
      this.#at += piece.length
      return
    }
    let at = 0
    while (at < piece.length) {
      const next = this.#state === 'string' ? this.#skipString(piece, at) : at + 1
      if (next === at + 1) this.#readUnit(piece.charCodeAt(at))
      this.#at += next - at
      at = next
    }
  }

  /** Another text follows, which is a part of the same JSON if there is one. */
  beginPart(): void {
    if (this.#state === 'prose') this.#state = 'start'
  }

  /** Nothing more comes. */
  end(): void {
    this.#decide(false)
  }

  /** Numbers that end before are not asked for any more. */
  forget(before: number): void {
    if (this.#numbers.length > 0) this.#numbers = this.#numbers.filter(({ end }) => end > before)
  }

  /** Where the next character stands that means something in a string; it is read on its own. */
  #skipString(piece: string, at: number): number {
    quoteOrBackslash.lastIndex = at
    const found = quoteOrBackslash.exec(piece)?.index ?? piece.length
    return found === at ? at + 1 : found
  }

  #readUnit(unit: number) {
    switch (this.#state) {
      case 'start':
        if (!isSpace(unit)) this.#begin(unit)
        return
      case 'string':
        if (unit === quote) this.#state = 'between'
        else if (unit === backslash) this.#state = 'escape'
        return
      case 'escape':
        this.#state = 'string'
        return
      case 'word':
        if (isWordUnit(unit) && this.#word.length < wordMost)
          this.#word += String.fromCharCode(unit)
        else if (this.#endWord()) this.#readBetween(unit)
        return
      case 'between':
        this.#readBetween(unit)
        return
      case 'prose':
    }
  }

  #begin(unit: number) {
    const isJson = unit === 123 || unit === 91
    this.#state = isJson ? 'between' : 'prose'
    this.#mark = unit
  }

  #readBetween(unit: number) {
    if (isSpace(unit)) {
      if (++this.#spaces > spaceMost) this.#decide(true)
      return
    }
    if (this.#undecided) this.#decide(endsValue(unit))
    if (unit === quote && beginsString(this.#mark)) this.#state = 'string'
    else if (isWordUnit(unit) && this.isValuePlace) {
      this.#state = 'word'
      this.#word = String.fromCharCode(unit)
      return
    } else if (!isPunctuation(unit)) this.#state = 'prose'
    this.#mark = unit
  }

  /** False where what has been read is no JSON. */
  #endWord(): boolean {
    const word = this.#word
    const isNumber = number.test(word)
    if (!isNumber && word !== 'true' && word !== 'false' && word !== 'null') {
      this.#state = 'prose'
      return false
    }
    this.#state = 'between'
    this.#spaces = 0
    if (isNumber && word.length >= numberLeast) {
      this.#undecided = { start: this.#at - word.length, end: this.#at, isValue: null }
      this.#numbers.push(this.#undecided)
    }
    this.#mark = wordMark
    return true
  }

  #decide(isValue: boolean) {
    if (this.#undecided) this.#undecided.isValue = isValue
    this.#undecided = null
  }
}
