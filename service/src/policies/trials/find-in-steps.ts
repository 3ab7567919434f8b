import { sliceLength } from '#policies/rules/pattern-search.ts'
import { EntityScanner } from '#redaction/entity-scanner.ts'
import type { EntityKind } from '#redaction/entity.ts'
import type { LiteralSet } from '#text/literal-set.ts'
import { Normaliser } from '#text/normalise.ts'
import type { PatternMatch, PatternSet } from '#text/pattern-set.ts'
import type { Steps } from '#text/steps.ts'

type Sought = {
  set: PatternSet
  pattern: number
  /** The most that a match can span. */
  width: number
}

/** The leftmost match at or after `from`. Only a pattern without a widest match is looked for in all of the text at once. */
export function* findInSteps(
  { set, pattern, width }: Sought,
  text: string,
  from: number,
): Steps<PatternMatch | null> {
  const length = width === Infinity ? text.length + 1 : sliceLength
  for (let start = from; start <= text.length; start += length) {
    // A match sees the character before it and one behind it.
    const before = Math.min(start, 1)
    const offset = start - before
    const match = set.find(pattern, text.slice(offset, start + length + width + 1), before)
    yield
    if (match && (match.start < before + length || start + length >= text.length)) {
      return { start: offset + match.start, end: offset + match.end }
    }
  }
  return null
}

/** Finds literals as a scan does. */
export function* scanInSteps(
  literals: LiteralSet,
  text: string,
  onHit: (literal: number, start: number) => void,
): Steps<void> {
  const scan = literals.scan()
  for (let start = 0; start < text.length; start += sliceLength) {
    scan.read(text.slice(start, start + sliceLength), onHit)
    yield
  }
}

type FoundEntity = PatternMatch & { kind: EntityKind }

/** All personal data and secrets of a text. */
export function* findEntitiesInSteps(text: string): Steps<FoundEntity[]> {
  const found: FoundEntity[] = []
  const scanner = new EntityScanner({
    begin: (kind, start) => void found.push({ kind, start, end: text.length }),
    end(end) {
      const last = found.at(-1)
      if (last) last.end = end
    },
  })
  for (let start = 0; start < text.length; start += sliceLength) {
    scanner.read(text.slice(start, start + sliceLength))
    yield
  }
  scanner.end()
  return found
}

export type Normalised = { text: string; originalOffset(index: number): number }

/** Normalises a complete text. */
export function* normaliseInSteps(original: string): Steps<Normalised> {
  const normaliser = new Normaliser()
  let text = ''
  for (let start = 0; start < original.length; start += sliceLength) {
    text += normaliser.push(original.slice(start, start + sliceLength))
    yield
  }
  text += normaliser.end()
  return { text, originalOffset: (index) => normaliser.originalOffset(index) }
}
