/** Takes the texts inside JSON. They are numbered from 0 in the order in which they start. */
type Sink = {
  add(number: number, text: string): void
  end(number: number): void
}

/** Later texts of the same JSON share the last number, one per line, so that memory stays bounded. */
const textsMax = 1000
/** No number that a program can use is longer. */
const wordMax = 100

const quote = 0x22
const backslash = 0x5c
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
/** The end of a number or a literal: white space, punctuation or a quote. */
const wordEnd = /[\s{}[\],:"]/g
const betweenTexts = /[^\s{}[\],:]/g
const numberStart = /^-?(?:\d[\d.eE+-]*)?$/
const literals = ['true', 'false', 'null']

/**
 * Finds the texts inside JSON while it grows: keys and strings as they are read, without their escapes, and also
 * numbers and literals, because a card number is a number. All that is left out is white space and punctuation. From
 * the first word on that is not JSON, everything is one text as it is written. It never throws.
 */
export class JsonTexts {
  #state: 'between' | 'word' | 'broken' | 'string' | 'escape' | 'hex' = 'between'
  #count = 0
  /**
   * The current text, as far as it was read in this fragment. A list: a string that is put together from millions of others is
   * joined by V8 when it is first read, all at once.
   */
  #pieces: string[] = []
  /** The number or literal so far. */
  #word = ''
  /** The digits of an escape so far. */
  #hex = ''

  feed(fragment: string, sink: Sink) {
    let at = 0
    while (at < fragment.length) at = this.#step(fragment, at, sink)
    this.#flush(sink)
  }

  /** Reads on from a position, and returns the next one. */
  #step(fragment: string, at: number, sink: Sink): number {
    switch (this.#state) {
      case 'between':
        return this.#readBetween(fragment, at)
      case 'word':
        return this.#readWord(fragment, at, sink)
      case 'broken':
        this.#add(fragment.slice(at))
        return fragment.length
      case 'string':
        return this.#readString(fragment, at, sink)
      case 'escape':
        return this.#readEscape(fragment, at)
      case 'hex':
        return this.#readHex(fragment, at)
    }
  }

  #readBetween(fragment: string, at: number): number {
    const start = indexOf(betweenTexts, fragment, at)
    if (start === fragment.length) return start
    const isString = fragment.charCodeAt(start) === quote
    this.#state = isString ? 'string' : 'word'
    this.#word = ''
    this.#count += 1
    if (this.#count > textsMax) this.#add('\n')
    return isString ? start + 1 : start
  }

  #readWord(fragment: string, at: number, sink: Sink): number {
    const end = indexOf(wordEnd, fragment, at)
    this.#word += fragment.slice(at, Math.min(end, at + wordMax))
    if (!isWord(this.#word) || end - at > wordMax) {
      this.#state = 'broken'
      return at
    }
    this.#add(fragment.slice(at, end))
    if (end < fragment.length) this.#endText(sink)
    return end
  }

  #readString(fragment: string, at: number, sink: Sink): number {
    let end = at
    let code = fragment.charCodeAt(end)
    while (end < fragment.length && code !== quote && code !== backslash) {
      end += 1
      code = fragment.charCodeAt(end)
    }
    this.#add(fragment.slice(at, end))
    if (end === fragment.length) return end
    if (code === quote) this.#endText(sink)
    else this.#state = 'escape'
    return end + 1
  }

  /** Some parsers take an escape that JSON does not have for the character itself. */
  #readEscape(fragment: string, at: number): number {
    const character = fragment.charAt(at)
    this.#state = character === 'u' ? 'hex' : 'string'
    this.#hex = ''
    if (character !== 'u') this.#add(escapes[character] ?? character)
    return at + 1
  }

  #readHex(fragment: string, at: number): number {
    const digit = fragment.charAt(at)
    if (!/[\da-fA-F]/.test(digit)) {
      this.#add(`u${this.#hex}`)
      this.#state = 'string'
      return at
    }
    this.#hex += digit
    if (this.#hex.length === 4) {
      this.#add(String.fromCharCode(Number.parseInt(this.#hex, 16)))
      this.#state = 'string'
    }
    return at + 1
  }

  #endText(sink: Sink) {
    this.#state = 'between'
    // What shares the last number is one text, so it is handed over at once: a whole one must not come in parts.
    if (this.#count >= textsMax) return
    this.#flush(sink)
    sink.end(this.#count - 1)
  }

  #add(piece: string) {
    if (piece !== '') this.#pieces.push(piece)
  }

  #flush(sink: Sink) {
    if (this.#pieces.length === 0) return
    sink.add(Math.min(this.#count, textsMax) - 1, this.#pieces.join(''))
    this.#pieces = []
  }
}

/** Where the pattern next matches; the length of the text if it does not. */
function indexOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.exec(text)?.index ?? text.length
}

/** Whether this is a number or a literal, or may become one. */
const isWord = (word: string) =>
  word.length <= wordMax &&
  (numberStart.test(word) || literals.some((literal) => literal.startsWith(word)))
