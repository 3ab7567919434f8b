import type { Steps } from '#platform/steps/steps.ts'
import { EntityScanner } from '#redaction/entity-scanner.ts'
import type { EntityKind } from '#redaction/entity.ts'
import { LiteralSet } from '#text/literal-set.ts'
import { normalisedPieces } from '#text/normalised-pieces.ts'
import { otherReadings, type Passage, toPassage } from '#text/passage.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { createPatternSearch, type PatternsFound, type RuleWithPatterns } from './pattern-search.ts'

/** A rule, as far as it looks for something in texts. */
type RuleWithWords = RuleWithPatterns & {
  readonly rule: {
    /** The literals as they are written, and normalised. */
    readonly literalForms: ReadonlyMap<string, string>
    readonly entities: ReadonlySet<EntityKind>
    readonly asksSize: boolean
  }
}

/** A text that was sent as one, or one that was sent in parts. */
export type TextSegment = string | Passage

/** What was found in the segments of a text: each question is a lookup. */
export type VocabularyHits = {
  /** Throws where it could not be found out. */
  hasPattern(pattern: string): boolean
  /** Takes the literal as the rule has it. */
  hasLiteral(written: string): boolean
  /** Also where it is not known whether the pattern occurs. */
  mayHavePattern(pattern: string): boolean
  /** The same by a literal as it is normalised. */
  hasNormalised(literal: string): boolean
  /** Code points of the normalised segments, as they were sent; 0 if no rule asks for it. */
  readonly size: number
  /** Of personal data and secrets; 0 if no rule asks for any. What several readings of a text have counts once. */
  countOf(kind: EntityKind): number
}

/** Everything that the rules of a set look for, each thing once, so that one pass over a text serves all rules. */
export type Vocabulary = {
  find(segments: readonly TextSegment[]): Steps<VocabularyHits>
}

/** A longer text, as sent or normalised, is not read: a rule that asks for it fails, and blocks where it is enforced. */
const textMaxLength = 4 * 1024 * 1024

/** A text that is too long to be read. */
export class UnreadableText extends Error {}

export function* createVocabulary(
  setRules: readonly RuleWithWords[],
  engine: PatternEngine,
): Steps<Vocabulary> {
  const rules = setRules.map(({ rule }) => rule)
  const openSearch = yield* createPatternSearch(setRules, engine)
  const { literals, numbers, writtenNumbers } = yield* numberLiterals(rules)
  const literalSet = yield* LiteralSet.buildInSteps(literals)
  const asksSize = rules.some((rule) => rule.asksSize)
  const asksEntities = rules.some(({ entities }) => entities.size > 0)

  function* find(segments: readonly TextSegment[]): Steps<VocabularyHits> {
    const passages = segments.map(toPassage)
    requireReadable(lengthOf(passages))
    const patterns: PatternsFound = { hits: new Set(), missed: new Set() }
    const search = openSearch(patterns)
    const literalHits = new Uint8Array(literals.length)
    const onHit = (number: number) => (literalHits[number] = 1)
    const entityCounts = new Map<EntityKind, number>()
    let [size, length] = [0, 0]

    /** Reads one text; counts what it is counted for. */
    function* read(text: string, counts: Map<EntityKind, number>, isSent: boolean): Steps<void> {
      const scan = literalSet.scan()
      const entities = asksEntities ? countEntities(counts) : null
      let normalised = ''
      for (const piece of normalisedPieces(text)) {
        if (literals.length > 0) scan.read(piece, onHit)
        if (asksSize && isSent) size += countCodePoints(piece)
        entities?.read(piece)
        normalised += piece
        if (isSent) requireReadable((length += piece.length))
        yield
      }
      entities?.end()
      yield* search.read(normalised)
    }

    for (const passage of passages) {
      const sent = new Map<EntityKind, number>()
      for (const part of passage.parts) yield* read(part, sent, !passage.isRepeated)
      for (const reading of otherReadings(passage)) {
        const counts = new Map<EntityKind, number>()
        yield* read(reading, counts, false)
        raiseTo(sent, counts)
      }
      if (passage.isRepeated) continue
      for (const [kind, count] of sent) addTo(entityCounts, kind, count)
    }
    yield* search.end()
    return {
      hasPattern: (pattern) => hasPattern(patterns, pattern),
      mayHavePattern: (pattern) => patterns.hits.has(pattern) || patterns.missed.has(pattern),
      hasLiteral: (written) => isHit(literalHits, writtenNumbers.get(written)),
      hasNormalised: (literal) => isHit(literalHits, numbers.get(literal)),
      size,
      countOf: (kind) => entityCounts.get(kind) ?? 0,
    }
  }

  return { find }
}

const isHit = (hits: Uint8Array, number: number | undefined): boolean =>
  number !== undefined && hits[number] === 1

function hasPattern({ hits, missed }: PatternsFound, pattern: string): boolean {
  if (hits.has(pattern)) return true
  if (missed.has(pattern)) throw new Error('The pattern could not be looked for.')
  return false
}

const lengthOf = (passages: readonly Passage[]) =>
  passages.reduce((sum, { parts }) => parts.reduce((all, { length }) => all + length, sum), 0)

const addTo = (counts: Map<EntityKind, number>, kind: EntityKind, count: number) =>
  counts.set(kind, (counts.get(kind) ?? 0) + count)

/** A value that one reading has and another has not is one more; one that both have is the same. */
function raiseTo(counts: Map<EntityKind, number>, others: ReadonlyMap<EntityKind, number>) {
  for (const [kind, count] of others) counts.set(kind, Math.max(count, counts.get(kind) ?? 0))
}

const countEntities = (counts: Map<EntityKind, number>) =>
  new EntityScanner({ begin: (kind) => void addTo(counts, kind, 1) })

/** The different literals of all rules, and their numbers by what the rules have written. */
function* numberLiterals(rules: readonly RuleWithWords['rule'][]) {
  const numbers = new Map<string, number>()
  const writtenNumbers = new Map<string, number>()
  for (const { literalForms } of rules) {
    for (const [written, literal] of literalForms) {
      const number = numbers.get(literal) ?? numbers.size
      numbers.set(literal, number)
      writtenNumbers.set(written, number)
    }
    yield
  }
  return { literals: [...numbers.keys()], numbers, writtenNumbers }
}

function requireReadable(length: number) {
  if (length > textMaxLength) throw new UnreadableText('The text is too long to be read.')
}

function countCodePoints(text: string): number {
  let pairs = 0
  for (let at = 0; at < text.length; at++) {
    if ((text.codePointAt(at) ?? 0) > 0xffff) {
      pairs++
      at++
    }
  }
  return text.length - pairs
}
