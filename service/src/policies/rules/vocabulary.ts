import { EntityScanner } from '#redaction/entity-scanner.ts'
import type { EntityKind } from '#redaction/entity.ts'
import { LiteralSet } from '#text/literal-set.ts'
import { normalisedPieces } from '#text/normalised-pieces.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'
import { finish, type Steps } from '#text/steps.ts'

import { createPatternSearch, type PatternsFound } from './pattern-search.ts'
import type { CompiledRule } from './rule-program.ts'
import type { SetRule } from './rule-set.ts'

/** What was found in the segments of a text: each question is a lookup. */
export type Findings = {
  /** Throws where it could not be found out. */
  hasPattern(pattern: string): boolean
  /** Takes the literal as the rule has it. */
  hasLiteral(written: string): boolean
  /** Code points of the normalised segments; 0 if no rule asks for it. */
  readonly size: number
  /** Of personal data and secrets; 0 if no rule asks for any. */
  countOf(kind: EntityKind): number
}

/** Everything that the rules of a set look for, each thing once, so that one pass over a text serves all rules. */
export type Vocabulary = {
  find(segments: readonly string[]): Findings
  /** The same in steps of a few milliseconds. */
  findInSteps(segments: readonly string[]): Steps<Findings>
}

/** A longer text, as sent or normalised, is not read: a rule that asks for it fails, and blocks where it is enforced. */
const textMaxLength = 4 * 1024 * 1024

/** A text that is too long to be read. */
export class UnreadableText extends Error {}

export function* createVocabulary(
  setRules: readonly Pick<SetRule, 'mode' | 'rule'>[],
  engine: PatternEngine,
): Steps<Vocabulary> {
  const rules = setRules.map(({ rule }) => rule)
  const searchPatterns = yield* createPatternSearch(setRules, engine)
  const { literals, writtenNumbers } = yield* numberLiterals(rules)
  const literalSet = yield* LiteralSet.buildInSteps(literals)
  const asksSize = rules.some((rule) => rule.asksSize)
  const asksEntities = rules.some(({ entities }) => entities.size > 0)

  function* findInSteps(segments: readonly string[]): Steps<Findings> {
    requireReadable(segments.reduce((sum, { length }) => sum + length, 0))
    const patterns: PatternsFound = { hits: new Set(), missed: new Set() }
    const literalHits = new Uint8Array(literals.length)
    const onHit = (number: number) => (literalHits[number] = 1)
    const entityCounts = new Map<EntityKind, number>()
    let [size, length] = [0, 0]
    for (const segment of segments) {
      const scan = literalSet.scan()
      const entities = asksEntities ? countEntities(entityCounts) : null
      let text = ''
      for (const piece of normalisedPieces(segment)) {
        if (literals.length > 0) scan.read(piece, onHit)
        if (asksSize) size += countCodePoints(piece)
        entities?.read(piece)
        text += piece
        requireReadable((length += piece.length))
        yield
      }
      entities?.end()
      yield* searchPatterns(text, patterns)
    }
    return {
      hasPattern(pattern) {
        if (patterns.hits.has(pattern)) return true
        if (patterns.missed.has(pattern)) throw new Error('The pattern could not be looked for.')
        return false
      },
      hasLiteral: (written) => literalHits[writtenNumbers.get(written) ?? -1] === 1,
      size,
      countOf: (kind) => entityCounts.get(kind) ?? 0,
    }
  }

  return {
    findInSteps,
    find: (segments) => finish(findInSteps(segments)),
  }
}

const countEntities = (counts: Map<EntityKind, number>) =>
  new EntityScanner({ begin: (kind) => void counts.set(kind, (counts.get(kind) ?? 0) + 1) })

/** The different literals of all rules, and their numbers by what the rules have written. */
function* numberLiterals(rules: readonly CompiledRule[]) {
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
  return { literals: [...numbers.keys()], writtenNumbers }
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
