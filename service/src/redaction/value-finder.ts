import { finish, type Steps } from '#platform/steps/steps.ts'
import { decodeEscapes } from '#text/escape-decoder.ts'
import { normalise } from '#text/normalise.ts'

import { contextBefore, findBareNumber } from './bare-number.ts'
import type { EntityKind } from './entity.ts'
import { findDividedEscape } from './escape-places.ts'
import { JsonOutline } from './json-outline.ts'
import { divide, joints, type Reading, type Seam, unite } from './readings.ts'
import { type Span, ScannedText } from './text-view.ts'

/** A value that was found in a text. */
export type FoundValue = {
  readonly kind: EntityKind
  /** Normalised and without escapes, to compare it with others. */
  readonly value: string
  /** As it is read, but for its escapes. */
  readonly spelling: string
  /** Where it is a number of JSON: the quotes that what takes its place needs. */
  readonly quote: string
}

/** Takes a text in order, once it is final: what stays, the values, and where a part ends. */
export type ValueSink = {
  text(text: string): void
  value(found: FoundValue): void
  seam?(): void
}

/** Where a value stands, and what is replaced: more than the value where that is a part of a number. */
type ValuePlace = {
  readonly start: number
  readonly end: number
  readonly from: number
  readonly to: number
  readonly quote: string
  /** False while more must come first. */
  readonly isFinal: boolean
}

const digitsOnly = /^\d+$/
const isDigits = (text: string) =>
  digitsOnly.test(text.includes('\\') ? finish(decodeEscapes(finish(decodeEscapes(text)))) : text)

/** How much of what has left is kept at most: cutting it each time would take longer. */
const keptBefore = 4096

/** Values that overlap are replaced together, up to this length. */
const mergedMost = 16_000

/**
 * Finds values in a text that may come in pieces and in parts; what it hands on, all together, does not depend on the pieces.
 * The text is read in every way in which a reader may read it: as it is written, and with its JSON escapes decoded; with
 * nothing and with a line break between its parts. The ways divide where they begin to differ, so that most texts are read
 * once. What is found in one of them is a value, and where values overlap, all of it is one.
 */
export class ValueFinder {
  readonly #sink: ValueSink
  readonly #outline = new JsonOutline()
  #readings: Reading[] = [{ view: new ScannedText(), joints }]
  #hasBackslash = false
  #isEnded = false
  /** The end of what has left. */
  #before = ''
  /** The original text from #base on, which has not left. */
  #text = ''
  #base = 0
  /** Where parts end, behind #base. */
  #seams: number[] = []

  constructor(sink: ValueSink) {
    this.#sink = sink
  }

  /** Characters that have not left and may still do so. */
  get held(): number {
    const first = this.#findFirst()
    const isOpen = first && first.start <= this.#base && this.#findEnd(first) === Infinity
    return isOpen ? 0 : this.#text.length
  }

  push(piece: string): void {
    this.#text += piece
    this.#outline.push(piece)
    this.#hasBackslash ||= piece.includes('\\')
    const begun: Reading[] = []
    for (const { view, joints: same } of this.#readings) {
      for (const deeper of view.push(piece)) begun.push({ view: deeper, joints: same })
    }
    if (begun.length > 0) this.#readings.push(...begun)
    this.#settle(this.#findFrontier())
    if (this.#readings.length > 1) this.#readings = unite(this.#readings)
  }

  /** A part of the text is over, and another one follows. */
  join(seam: Seam): void {
    this.#outline.beginPart()
    this.#seams.push(this.#base + this.#text.length)
    this.#readings = this.#readings.flatMap((reading) => divide(reading, seam))
    this.#settle(this.#findFrontier())
  }

  /** The text is over. */
  end(): void {
    this.#isEnded = true
    this.#outline.end()
    for (const { view } of this.#readings) view.end()
    this.#settle(this.#base + this.#text.length)
  }

  /** No value begins before that has not been found. */
  #findFrontier(): number {
    let frontier = Infinity
    for (const { view } of this.#readings) frontier = Math.min(frontier, view.settled)
    return frontier
  }

  #settle(frontier: number) {
    for (;;) {
      const first = this.#findFirst()
      const end = first && this.#findEnd(first)
      const place =
        first && end !== undefined && end <= frontier ? this.#findPlace(first, end, frontier) : null
      if (first && end !== undefined && place?.isFinal) {
        this.#replace(first.kind, end, place)
        continue
      }
      const held = place?.from ?? first?.start ?? frontier
      this.#release(this.#whole(Math.min(frontier, held)))
      return
    }
  }

  /** The value that begins first, and of those that begin together the longest. */
  #findFirst(): Span | undefined {
    let first: Span | undefined
    for (const { view } of this.#readings) {
      const [span] = view.spans
      const isFirst = !first || !span || span.start < first.start || isLonger(span, first)
      if (span && isFirst) first = span
    }
    return first
  }

  /** Where the values end that overlap with the first one. */
  #findEnd({ start, end: firstEnd }: Span): number {
    let [end, before] = [firstEnd, start]
    while (before < end && end - start <= mergedMost) {
      before = end
      for (const { view } of this.#readings) {
        for (const span of view.spans) {
          if (span.start >= before) break
          end = Math.max(end, span.end)
        }
      }
    }
    return end
  }

  /** Where a value stands that was found between two places, and what is replaced. */
  #findPlace({ kind, start: foundStart }: Span, foundEnd: number, frontier: number): ValuePlace {
    // A letter of an escape is no part of a value: without it, the rest of the escape would mean something else.
    const start = this.#dividedEscape(foundStart)?.end ?? foundStart
    const end = this.#dividedEscape(foundEnd)?.start ?? foundEnd
    const plain = { start, end, from: start, to: end, quote: '', isFinal: true }
    const number = this.#outline.findNumber(start, end)
    if (number && number.isValue !== false) {
      const isFinal = number.isValue === true && number.end <= frontier
      return { ...plain, from: number.start, to: number.end, quote: '"', isFinal }
    }
    // Other numbers have separators, which JSON does not.
    if (kind !== 'CARD' || !isDigits(this.#slice(start, end))) return plain
    return this.#findBare(plain, frontier)
  }

  #findBare(plain: ValuePlace, frontier: number): ValuePlace {
    const before = this.#before + this.#slice(this.#base, plain.start)
    const after = this.#slice(plain.end, this.#base + this.#text.length)
    const bare = findBareNumber(before.slice(-contextBefore), after, this.#isEnded)
    if (!bare) return plain
    if (bare === 'open') return { ...plain, from: plain.start - 1, isFinal: false }
    const [from, to] = [plain.start - bare.before, plain.end + bare.after]
    return { ...plain, from, to, quote: bare.quote, isFinal: to <= frontier }
  }

  #replace(kind: EntityKind, foundEnd: number, { start, end, from, to, quote }: ValuePlace) {
    const depth = this.#depthOf(foundEnd)
    this.#consume(Math.max(foundEnd, to))
    if (start >= end) return
    const written = this.#slice(start, end)
    let spelling = written
    for (let level = 0; level < depth; level++) spelling = finish(decodeEscapes(spelling))
    this.#release(from)
    this.#drop(to)
    this.#sink.value({ kind, value: normalise(spelling).text, spelling, quote })
    this.#passSeams()
  }

  #slice(start: number, end: number): string {
    return this.#text.slice(start - this.#base, end - this.#base)
  }

  /** How often what was found before a place was decoded. */
  #depthOf(before: number): number {
    let depth = 0
    for (const { view } of this.#readings) {
      if ((view.spans[0]?.start ?? before) < before) depth = Math.max(depth, view.depth)
    }
    return depth
  }

  /** What was found before a place is done; what goes on behind it begins there. */
  #consume(end: number) {
    for (const { view } of this.#readings) {
      while ((view.spans[0]?.end ?? Infinity) <= end) view.spans.shift()
      const [first] = view.spans
      if (first && first.start < end) first.start = end
    }
  }

  #dividedEscape(offset: number) {
    if (!this.#hasBackslash) return null
    const escape = findDividedEscape(this.#text, offset - this.#base)
    return escape && { start: escape.start + this.#base, end: escape.end + this.#base }
  }

  /** The place, or where the escape begins that it would divide. */
  #whole(offset: number): number {
    return this.#dividedEscape(offset)?.start ?? offset
  }

  /** Hands on the text before a place, part by part. */
  #release(offset: number) {
    if (this.#seams.length > 0) this.#passSeams()
    for (let [seam] = this.#seams; seam !== undefined && seam <= offset; [seam] = this.#seams) {
      this.#pass(seam)
      this.#passSeams()
    }
    this.#pass(offset)
  }

  #pass(offset: number) {
    const text = this.#drop(offset)
    if (text !== '') this.#sink.text(text)
  }

  #passSeams() {
    while ((this.#seams[0] ?? Infinity) <= this.#base) {
      this.#seams.shift()
      this.#sink.seam?.()
    }
  }

  /** Removes the text before a place, and returns it. */
  #drop(offset: number): string {
    const length = offset - this.#base
    if (length <= 0) return ''
    const dropped = this.#text.slice(0, length)
    this.#text = this.#text.slice(length)
    this.#base += length
    this.#before += dropped
    if (this.#before.length > keptBefore) this.#before = this.#before.slice(-contextBefore)
    this.#outline.forget(this.#base)
    return dropped
  }
}

const isLonger = (one: Span, other: Span) => one.start === other.start && one.end > other.end

/** How much of a text is read in one step. */
const readAtOnce = 4096

/** More of a text. A long piece takes several steps. */
export function* pushInSteps(reader: { push(piece: string): unknown }, text: string): Steps<void> {
  for (let at = 0; at < text.length; at += readAtOnce) {
    reader.push(at === 0 && text.length <= readAtOnce ? text : text.slice(at, at + readAtOnce))
    if (text.length > readAtOnce) yield
  }
}
