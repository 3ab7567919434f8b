import {
  classOf,
  hasOtherDash,
  isAlphanumeric,
  isAsciiLetter,
  isDigit,
  isHex,
  isTokenStart,
} from './characters.ts'
import type { EntityKind, Find, Finding, Seen } from './entity.ts'
import { findIpv6 } from './find-address.ts'
import { findEmail, findNameStart, isNameUnit, longestName } from './find-email.ts'
import { findIban } from './find-iban.ts'
import { findNumber } from './find-number.ts'
import { findSecret } from './find-secret.ts'

/** Entities come in order and do not overlap: one ends before the next begins. Places are indexes of the whole text. */
export type EntityListener = {
  /** An entity is certain. More of it may follow. */
  begin(kind: EntityKind, start: number): void
  /** Where the last one ends. */
  end?(end: number): void
}

/** How much of what was read is kept: a name before an `@`, the footer of a key, and two characters before them. */
const keptBefore = 68

/** What something can begin with anywhere, and what it can begin with only where a word begins. */
const canBegin = classOf('@-pPsSaAtT')
const canBeginToken = (unit: number) =>
  isAlphanumeric(unit) || unit === 43 || unit === 40 || unit === 58

/**
 * Finds entities in one pass over a normalised text that may come in pieces; the result does not depend on them. At each
 * place a few functions look ahead, none of them farther than `entityHold` allows, so the time grows with the length of
 * the text only. An entity whose length has no such bound is certain before it ends.
 */
export class EntityScanner {
  readonly #listener: EntityListener
  /** The text from #base on. */
  #text = ''
  #base = 0
  /** The next place to look at, in #text. */
  #at = 0
  #isWhole = false
  #hasDashes = false
  /** An entity that is certain and may go on. */
  #open: Finding | null = null
  /** Those that can still become part of the name of an address: they are not reported yet. */
  #inName: Finding[] = []
  /** No name of an address begins before, because an entity that was reported ends there. */
  #nameFrom = 0
  /** Where the last entity ends. */
  #lastEnd = 0

  constructor(listener: EntityListener) {
    this.#listener = listener
  }

  /** A copy that goes its own way from here, and reports to another listener. */
  fork(listener: EntityListener): EntityScanner {
    const fork = new EntityScanner(listener)
    fork.#text = this.#text
    fork.#base = this.#base
    fork.#at = this.#at
    fork.#isWhole = this.#isWhole
    fork.#hasDashes = this.#hasDashes
    fork.#open = this.#open
    fork.#inName = [...this.#inName]
    fork.#nameFrom = this.#nameFrom
    fork.#lastEnd = this.#lastEnd
    return fork
  }

  /** Whether both find the same in whatever comes. An entity that is not certain, or may go on, is not compared. */
  agreesWith(other: EntityScanner): boolean {
    const hasNone = !this.#open && !other.#open && this.#inName.length + other.#inName.length === 0
    return (
      hasNone &&
      this.#at === other.#at &&
      this.#hasDashes === other.#hasDashes &&
      Math.max(0, this.#nameFrom) === Math.max(0, other.#nameFrom) &&
      Math.max(0, this.#lastEnd) === Math.max(0, other.#lastEnd) &&
      this.#text === other.#text
    )
  }

  /** Whatever comes, no entity begins before this index that has not been reported. */
  get settled(): number {
    return this.#base + (this.#open || this.#isWhole ? this.#at : this.#findSettled())
  }

  read(piece: string): void {
    this.#text += piece
    this.#hasDashes ||= hasOtherDash(piece)
    this.#advance()
    this.#forget()
  }

  /** The text is over. */
  end(): void {
    this.#isWhole = true
    this.#advance()
    this.#report(Infinity)
  }

  #advance() {
    for (;;) {
      if (this.#open && !this.#closeOpen(this.#open)) return
      const found = this.#findNext()
      if (found === 'open') {
        if (!this.#isWhole) this.#report(this.#findSettled())
        return
      }
      if (!found) return
      this.#accept(found)
    }
  }

  /** Returns false while the entity may still go on. */
  #closeOpen({ start, findRest }: Finding): boolean {
    const rest = findRest?.(this.#seen, this.#at, start)
    if (rest) this.#at = rest.end
    if (rest?.isOpen) return false
    this.#open = null
    this.#nameFrom = this.#at
    this.#lastEnd = this.#at
    this.#listener.end?.(this.#base + this.#at)
    return true
  }

  #findNext(): Finding | 'open' | null {
    const seen = this.#seen
    const { text } = seen
    let at = this.#at
    for (; at < text.length; at++) {
      const unit = text.charCodeAt(at)
      if (!canBegin(unit) && !(canBeginToken(unit) && isTokenStart(seen, at))) continue
      this.#at = at
      const found = this.#findAt(seen)
      if (found) return found
    }
    this.#at = at
    return this.#isWhole ? null : 'open'
  }

  get #seen() {
    return {
      text: this.#text,
      isWhole: this.#isWhole,
      from: this.#lastEnd,
      hasDashes: this.#hasDashes,
    }
  }

  #findAt(seen: Seen): ReturnType<Find> {
    const at = this.#at
    const { text } = seen
    const unit = text.charCodeAt(at)
    if (unit === 64) return findEmail(seen, at, this.#nameStart())
    const isLetterHere = isAsciiLetter(unit)
    const found = isLetterHere || unit === 45 ? findSecret(seen, at) : null
    if (found || !isTokenStart(seen, at)) return found
    if (isDigit(unit)) return findNumber(seen, at) ?? findIpv6(seen, at)
    if (unit === 43 || unit === 40) return findNumber(seen, at)
    if (!isLetterHere) return unit === 58 ? findIpv6(seen, at) : null
    return findIban(seen, at) ?? (isHex(unit) ? findIpv6(seen, at) : null)
  }

  #accept(found: Finding) {
    this.#at = found.end
    this.#lastEnd = found.end
    if (found.kind === 'SECRET') {
      this.#report(Infinity)
      this.#open = found
      this.#listener.begin(found.kind, this.#base + found.start)
      return
    }
    if (found.kind === 'EMAIL') {
      while ((this.#inName.at(-1)?.start ?? -1) >= found.start) this.#inName.pop()
    }
    this.#inName.push(found)
    this.#report(found.end - longestName)
  }

  #findSettled(): number {
    const unit = this.#text.charCodeAt(this.#at)
    const canGoOn = this.#at === this.#text.length || unit === 64 || isNameUnit(unit)
    return canGoOn ? this.#nameStart() : this.#at
  }

  /** Where the name begins that may end in an `@` at or after the place to look at next. */
  #nameStart(): number {
    const start = findNameStart(this.#text, this.#at, this.#nameFrom)
    // An entity that begins before the name cannot become part of it.
    const crossing = this.#inName.find((one) => one.start < start && one.end > start)
    return crossing ? crossing.end : start
  }

  /** Reports the entities that begin before a place. */
  #report(before: number) {
    for (let [first] = this.#inName; first && first.start < before; [first] = this.#inName) {
      this.#inName.shift()
      this.#nameFrom = Math.max(this.#nameFrom, first.end)
      this.#listener.begin(first.kind, this.#base + first.start)
      this.#listener.end?.(this.#base + first.end)
    }
  }

  #forget() {
    const forgotten = this.#at - keptBefore
    if (forgotten <= 0) return
    this.#text = this.#text.slice(forgotten)
    this.#base += forgotten
    this.#at -= forgotten
    this.#nameFrom -= forgotten
    this.#lastEnd -= forgotten
    const move = (one: Finding) => ({
      ...one,
      start: one.start - forgotten,
      end: one.end - forgotten,
    })
    this.#inName = this.#inName.map(move)
    this.#open &&= move(this.#open)
  }
}
