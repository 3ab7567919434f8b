import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import { type EntityListener, EntityScanner } from '#redaction/entity-scanner.ts'
import type { LiteralScan } from '#text/literal-set.ts'
import { Normaliser } from '#text/normalise.ts'
import { splitsPairAt } from '#text/surrogates.ts'

import type { Arrivals } from './arrivals.ts'
import { type AskedAtoms, type AtomStarts, type Place, termAtom } from './atom-starts.ts'
import { ChannelWindows } from './channel-windows.ts'
import { countWhile } from './count-while.ts'
import type { EntityCount } from './entity-count.ts'
import type { SlowPatterns } from './slow-patterns.ts'
import type { WindowQueue } from './window-queue.ts'

/** What all readers of an answer share. */
export type AnswerReading = {
  readonly rules: Omit<AnswerRules, 'rules'>
  readonly asked: AskedAtoms
  readonly starts: AtomStarts
  /** One for each scorer; none where no rule asks for scores. */
  readonly windows: readonly WindowQueue[]
  /** Null where patterns are looked for at once. */
  readonly slowPatterns: SlowPatterns | null
  /** Null where no rule counts personal data or secrets. */
  readonly entities: EntityCount | null
  /** A verdict on a window has come, or the result of a search. */
  onVerdict(): void
  /** There will be none on a window that starts there. */
  onUnjudged(order: number): void
}

/**
 * Reads the text of one channel and records where atoms become true. Indexes are those of the normalised text.
 *
 * An index is decided when no later text can change what matches there or before: a pattern that starts there has been
 * seen to its widest end and one character further, which a word boundary looks at; no literal or term that starts
 * there can still be completed; no personal data or secret that starts there can still become certain; its window has a verdict;
 * and where patterns are looked for elsewhere, the result has come.
 * The smallest of them counts for all kinds of atoms, because an earlier match of one kind must not lose against a later match
 * of another that happens to be known sooner.
 */
export class ChannelReader {
  readonly #name: string
  readonly #arrivals: Arrivals
  readonly #reading: AnswerReading
  readonly #normaliser = new Normaliser()
  readonly #scan: LiteralScan | null
  readonly #terms: LiteralScan | null
  readonly #windows: readonly ChannelWindows[]
  readonly #entities: EntityScanner | null
  /** The patterns that start before it are known, where they are looked for elsewhere. */
  #searchedTo = 0
  #isSearching = false
  /** The normalised text from #base on: what is not decided, and the character before it. */
  #text = ''
  #base = 0
  #decided = 0
  #counted = 0
  /** The second halves of the surrogate pairs that are not counted. */
  #pairs: number[] = []
  /** The order of the channel's end, where an empty match can start. */
  #endOrder: number | null = null

  constructor(name: string, arrivals: Arrivals, reading: AnswerReading) {
    this.#name = name
    this.#arrivals = arrivals
    this.#reading = reading
    this.#scan = reading.asked.literal.size > 0 ? reading.rules.literals.scan() : null
    this.#terms = (reading.asked.term.size > 0 && reading.rules.scanTerms?.()) || null
    this.#windows = reading.windows.map((queue) => this.#openWindows(queue))
    const { entities } = reading
    const counted = entities && {
      begin: (...[kind, start]: Parameters<EntityListener['begin']>) =>
        entities.add(kind, () => this.#placeOf(start)),
    }
    this.#entities = counted && new EntityScanner(counted)
  }

  /** A piece of the original, which the arrivals have already. Returns how much longer the normalised text has become. */
  add(piece: string): number {
    const before = this.#normaliser.lengthSoFar
    this.#read(this.#normaliser.push(piece))
    return Math.max(0, this.#normaliser.lengthSoFar - before)
  }

  end(order: number) {
    const rest = this.#normaliser.end()
    this.#endOrder = order
    this.#read(rest)
  }

  /** The order of the first character that is not decided; Infinity when all are that have arrived. */
  get decidedOrder(): number {
    if (this.#decided > this.#length) return Infinity
    const offset = this.#normaliser.originalOffset(this.#decided)
    if (offset < this.#arrivals.length) return this.#arrivals.orderAt(offset)
    return this.#endOrder === null ? Infinity : this.#endOrder
  }

  /** How many characters must come before some scorer has another window; 0 without scorers. */
  get missing(): number {
    const missing = this.#windows.reduce((least, each) => Math.min(least, each.missing), Infinity)
    return missing === Infinity ? 0 : missing
  }

  /** How many code points, of those not yet taken, begin before `order`. */
  codePointsBefore(order: number): number {
    const end = this.#indexOf(order)
    return end - this.#counted - this.#countPairsBefore(end)
  }

  /** The code points before `order` are counted and need not be kept. */
  takeCodePoints(order: number) {
    this.#counted = this.#indexOf(order)
    this.#pairs = this.#pairs.slice(this.#countPairsBefore(this.#counted))
    this.#forget()
  }

  get #length(): number {
    return this.#base + this.#text.length
  }

  #read(piece: string) {
    if (piece === '' && this.#endOrder === null) return
    this.#text += piece
    if (this.#isCounting) this.#notePairs(piece)
    this.#scan?.read(piece, (literal, start) => {
      if (!this.#reading.asked.literal.has(literal)) return
      this.#reading.starts.record('literal', literal, this.#placeOf(start))
    })
    this.#terms?.read(piece, (_, start) => {
      this.#reading.starts.record('term', termAtom, this.#placeOf(start))
    })
    this.#entities?.read(piece)
    if (this.#endOrder !== null) this.#entities?.end()
    for (const windows of this.#windows) windows.read(piece, this.#endOrder !== null)
    this.#advance()
  }

  #openWindows(queue: WindowQueue): ChannelWindows {
    const { starts, onVerdict, onUnjudged } = this.#reading
    return new ChannelWindows(queue, {
      channel: this.#name,
      placeOf: (index) => this.#placeOf(index),
      offsetOf: (index) => this.#normaliser.originalOffset(index),
      onHits: (atoms, place) => {
        for (const atom of atoms) starts.record('score', atom, place)
      },
      onUnjudged: ({ order }) => onUnjudged(order),
      onVerdict: () => {
        this.#advance()
        onVerdict()
      },
    })
  }

  #advance() {
    const decided = this.#searchPatterns(this.#nextDecided())
    if (decided <= this.#decided) return
    this.#decided = decided
    this.#forget()
  }

  #nextDecided(): number {
    const { rules } = this.#reading
    const length = this.#length
    const held = Math.max(rules.patternHold, this.#scan?.held ?? 0, this.#terms?.held ?? 0)
    const settled = Math.min(length - held, this.#entities?.settled ?? length)
    let decided = this.#endOrder === null ? Math.max(0, settled) : length + 1
    for (const { scoredTo } of this.#windows) decided = Math.min(decided, scoredTo)
    return splitsPairAt(this.#text, decided - this.#base) ? decided - 1 : decided
  }

  get #isCounting(): boolean {
    return this.#reading.asked.size.size > 0
  }

  /** Of the piece that was read last. The normaliser never divides a pair. */
  #notePairs(piece: string) {
    const start = this.#length - piece.length
    for (let index = 1; index < piece.length; index++) {
      if (splitsPairAt(piece, index)) this.#pairs.push(start + index)
    }
  }

  #countPairsBefore(end: number): number {
    return countWhile(this.#pairs, (index) => index < end)
  }

  /**
   * Finds the patterns that start before `decided`; those that started before the last decided index are known. Returns
   * before which index they are known now.
   */
  #searchPatterns(decided: number): number {
    const { rules, asked, slowPatterns } = this.#reading
    if (asked.pattern.size === 0) return decided
    if (slowPatterns) return this.#searchElsewhere(slowPatterns, decided)
    if (decided <= this.#decided) return decided
    const from = this.#decided - this.#base
    const text = this.#textBefore(decided)
    for (const pattern of rules.patterns.hits(text)) {
      if (!asked.pattern.has(pattern)) continue
      const match = rules.patterns.find(pattern, text, from)
      if (match) this.#recordPattern(pattern, this.#base + match.start, decided)
    }
    return decided
  }

  /** One search at a time: what comes meanwhile is searched together. */
  #searchElsewhere(slowPatterns: SlowPatterns, decided: number): number {
    if (decided > this.#searchedTo && !this.#isSearching) {
      this.#isSearching = true
      const base = this.#base
      const from = this.#searchedTo - base
      slowPatterns.search(this.#textBefore(decided), from, (found) => {
        const { asked } = this.#reading
        for (const { number, start } of found) {
          if (asked.pattern.has(number)) this.#recordPattern(number, base + start, decided)
        }
        this.#isSearching = false
        this.#searchedTo = decided
        this.#advance()
        this.#reading.onVerdict()
      })
    }
    return Math.min(decided, this.#searchedTo)
  }

  /** What matches that start before `decided` see. What lies further is searched when it is decided: much of it may wait for a scorer. */
  #textBefore(decided: number): string {
    return this.#text.slice(0, decided - this.#base + this.#reading.rules.patternHold + 1)
  }

  #recordPattern(pattern: number, start: number, before: number) {
    if (start < before) this.#reading.starts.record('pattern', pattern, this.#placeOf(start))
  }

  #placeOf(index: number): Place {
    const channel = this.#name
    if (this.#endOrder !== null && index >= this.#length) {
      return { order: this.#endOrder, channel, offset: this.#arrivals.length }
    }
    const start = splitsPairAt(this.#text, index - this.#base) ? index - 1 : index
    const offset = this.#normaliser.originalOffset(start)
    return { order: this.#arrivals.orderAt(offset), channel, offset }
  }

  /** The first index, of those not yet counted, that does not begin before `order`. */
  #indexOf(order: number): number {
    let low = this.#counted
    let high = Math.min(this.#decided, this.#length)
    while (low < high) {
      const middle = (low + high) >>> 1
      const offset = this.#normaliser.originalOffset(middle)
      if (this.#arrivals.orderAt(offset) < order) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Keeps what is not decided, and the character before it: anchors and word boundaries look at it. */
  #forget() {
    const needed = Math.min(this.#decided, this.#length)
    // Where a character is counted decides its place in the original, which may be long after it is decided.
    this.#normaliser.forget(this.#isCounting ? Math.min(needed, this.#counted) : needed)
    const before = needed - this.#base - 1
    if (before <= 0) return
    const kept = splitsPairAt(this.#text, before) ? before - 1 : before
    this.#text = this.#text.slice(kept)
    this.#base += kept
  }
}
