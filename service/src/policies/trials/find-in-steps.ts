import type { Steps } from '#platform/steps/steps.ts'
import { sliceLength } from '#policies/rules/searched-parts.ts'
import { EntityScanner } from '#redaction/entity-scanner.ts'
import type { EntityKind } from '#redaction/entity.ts'
import type { LiteralSet } from '#text/literal-set.ts'
import { Normaliser } from '#text/normalise.ts'
import type { PatternMatch } from '#text/pattern-set.ts'

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
