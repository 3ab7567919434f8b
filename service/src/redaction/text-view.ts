import { EscapeDecoder } from '#text/escape-decoder.ts'
import { Normaliser } from '#text/normalise.ts'
import { OffsetMap } from '#text/offset-map.ts'

import { EntityScanner } from './entity-scanner.ts'
import type { EntityKind } from './entity.ts'

/** Something that was found, in places of the original text. Its end is Infinity until it is known. */
export type Span = { readonly kind: EntityKind; start: number; end: number }

/** Decodes from a place on, in the text that it reads. */
type Level = { readonly decoder: EscapeDecoder; readonly from: number }

/** JSON in JSON may have its backslashes written as escapes: then the escapes of the inner one are found only when those are decoded. */
const levelsMost = 2

const none: readonly ScannedText[] = []

type Found = { span: Span; /** In the normalised text. */ end: number }

/**
 * One way to read a text that may come in pieces: as it is written or with its JSON escapes decoded, and with something or
 * nothing between its parts. The scanner reads it normalised, so that invisible and look-alike characters hide nothing. What
 * it finds is told in places of the original.
 */
export class ScannedText {
  /** What was found and has not been taken, in order. */
  readonly spans: Span[] = []
  #normaliser = new Normaliser()
  #scanner = new EntityScanner(this.#listen())
  #levels: Level[] = []
  /** There is a view that decodes once more. */
  #hasDeeper = false
  /** From the text with what was put between parts to the one without; null: it is the same. */
  #seams: OffsetMap | null = null
  #length = 0
  #glued = 0
  /** Ends that only the next character tells in the original: invisible ones may follow. */
  #unended: Found[] = []
  #isEnded = false

  /** A copy that goes its own way from here. */
  fork(): ScannedText {
    const fork = new ScannedText()
    fork.#normaliser = this.#normaliser.fork()
    fork.#scanner = this.#scanner.fork(fork.#listen())
    fork.#levels = this.#levels.map(({ decoder, from }) => ({ decoder: decoder.fork(), from }))
    fork.#hasDeeper = this.#hasDeeper
    fork.#seams = this.#seams?.fork() ?? null
    fork.#length = this.#length
    fork.#glued = this.#glued
    const copies = new Map(this.spans.map((span) => [span, { ...span }]))
    fork.spans.push(...copies.values())
    fork.#unended = this.#unended.map(({ span, end }) => ({ span: copies.get(span) ?? span, end }))
    return fork
  }

  /** How often escapes are decoded. */
  get depth(): number {
    return this.#levels.length
  }

  /** Whatever comes, nothing begins before this place of the original that has not been found. */
  get settled(): number {
    return this.#originalOf(this.#scanner.settled)
  }

  /** More of the text. Returns the views that begin with it: those that decode escapes, where there is a first one. */
  push(piece: string): readonly ScannedText[] {
    let text = piece
    for (const { decoder } of this.#levels) text = decoder.push(text)
    return this.#readDecoded(text)
  }

  /** Whether both find the same in whatever comes, up to the next backslash if one of them decodes more. */
  agreesWith(other: ScannedText): boolean {
    return (
      this.#isIdle &&
      other.#isIdle &&
      this.#hasDeeper === other.#hasDeeper &&
      this.#normaliser.agreesWith(other.#normaliser) &&
      this.#scanner.agreesWith(other.#scanner)
    )
  }

  /** Whether the deeper of two views that agree can go: it begins anew at the next backslash. */
  replaces(deeper: ScannedText): boolean {
    if (!this.#hasDeeper || deeper.depth !== this.depth + 1) return false
    this.#hasDeeper = false
    const canGo = this.agreesWith(deeper)
    this.#hasDeeper = !canGo
    return canGo
  }

  get #isIdle(): boolean {
    return (
      this.spans.length === 0 &&
      this.#unended.length === 0 &&
      this.#levels.every(({ decoder }) => !decoder.hasBegun)
    )
  }

  #readDecoded(text: string): readonly ScannedText[] {
    const isDeepest = this.#hasDeeper || this.depth === levelsMost
    const escape = isDeepest ? -1 : text.indexOf('\\')
    if (escape < 0) {
      this.#read(text)
      return none
    }
    this.#read(text.slice(0, escape))
    const deeper = this.fork()
    this.#hasDeeper = true
    const rest = text.slice(escape)
    this.#read(rest)
    return [deeper, ...deeper.#readDecoded(deeper.#decode().push(rest))]
  }

  /** From here on escapes are decoded, once more than before. */
  #decode(): EscapeDecoder {
    const decoder = new EscapeDecoder()
    this.#levels.push({ decoder, from: this.#length - this.#glued })
    return decoder
  }

  /** Another part follows, with this in between. */
  join(glue: string): void {
    if (glue === '') return
    this.#endEscapes()
    this.#seams ??= new OffsetMap()
    const original = this.#length - this.#glued
    if (this.#glued === 0) this.#seams.addRun(0, 0, true)
    this.#seams.addRun(this.#length, original, false)
    this.#seams.addRun(this.#length + glue.length, original, true)
    this.#glued += glue.length
    this.#read(glue)
  }

  /** The text is over. */
  end(): void {
    this.#endEscapes()
    this.#scanner.read(this.#normaliser.end())
    this.#scanner.end()
    this.#isEnded = true
    this.#endSpans()
  }

  /** No escape goes on behind here. */
  #endEscapes() {
    let rest = ''
    for (const { decoder } of this.#levels) rest = decoder.push(rest) + decoder.end()
    if (rest !== '') this.#read(rest)
  }

  #listen() {
    return {
      begin: (kind: EntityKind, start: number) => {
        const span = { kind, start: this.#originalOf(start), end: Infinity }
        this.spans.push(span)
        this.#unended.push({ span, end: Infinity })
      },
      end: (end: number) => {
        const last = this.#unended.at(-1)
        if (last) last.end = end
      },
    }
  }

  #read(text: string) {
    this.#length += text.length
    this.#scanner.read(this.#normaliser.push(text))
    if (this.#unended.length > 0) this.#endSpans()
    const { settled } = this.#scanner
    const needed = Math.min(settled, this.#unended[0]?.end ?? settled) - 1
    this.#forget(Math.max(0, needed))
  }

  /** What stands before a normalised character is not asked for any more. */
  #forget(index: number) {
    if (this.#levels.length > 0) {
      let offset = this.#unjoined(this.#normaliser.originalOffset(index))
      for (const { decoder, from } of this.#levels.toReversed()) {
        if (offset <= from) continue
        const place = offset - from
        offset = from + decoder.originalOffset(place)
        decoder.forget(place)
      }
    }
    this.#normaliser.forget(index)
  }

  #endSpans() {
    const { length } = this.#normaliser
    const isKnown = ({ end }: Found) => end < length || (this.#isEnded && end <= length)
    for (let [first] = this.#unended; first && isKnown(first); [first] = this.#unended) {
      this.#unended.shift()
      first.span.end = this.#originalEnd(first.end)
    }
  }

  /** One original character may be several of the normalised text. It is replaced if any of them is. */
  #originalEnd(end: number): number {
    const last = this.#normaliser.originalOffset(end - 1)
    let next = end
    while (next < this.#normaliser.length && this.#normaliser.originalOffset(next) === last) next++
    return this.#originalOf(next)
  }

  /** Where in the original a normalised character starts. */
  #originalOf(index: number): number {
    let offset = this.#unjoined(this.#normaliser.originalOffset(index))
    for (let level = this.#levels.length - 1; level >= 0; level--) {
      const { decoder, from } = this.#levels[level] ?? {}
      if (decoder && from !== undefined && offset >= from) {
        offset = from + decoder.originalOffset(offset - from)
      }
    }
    return offset
  }

  #unjoined(index: number): number {
    return this.#seams ? this.#seams.at(index) : index
  }
}
