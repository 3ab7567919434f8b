import type { ASTNode } from '@marcbachmann/cel-js'

import { type EntityKind, isEntityKind } from '#redaction/entity.ts'
import type { PatternShape } from '#text/pattern-shape.ts'

import { childrenOf, textsOfList } from './expression-limits.ts'
import { type ScoreMap, scoredAs } from './score.ts'

/** What of a text an expression asks for. An atom becomes true once and stays true while a text grows. */
export type Atom =
  | { kind: 'pattern'; pattern: string }
  /** Already normalised. */
  | { kind: 'literal'; text: string }
  | { kind: 'size'; atLeast: number }
  | EntityAtom
  | ScoreAtom
  /** The rule's plain language, judged in windows of the text. */
  | { kind: 'judged' }
/** A number of findings of one kind of personal data or secrets, at least one. */
export type EntityAtom = { kind: 'entity'; entity: EntityKind; atLeast: number }
/** Decided by windows of the text. */
export type ScoreAtom = { kind: 'score'; category: string; above: number; isInclusive: boolean }

/** A missing score reaches nothing: the caller has to know whether it may be missing. */
export function isReached(atom: ScoreAtom, scores: ScoreMap): boolean {
  const score = scores.get(atom.category)
  if (score === undefined) return false
  return atom.isInclusive ? score >= atom.above : score > atom.above
}

/** A condition without negation over atoms, so that a growing text can only make it true. */
export type Formula =
  | { kind: 'and' | 'or'; parts: readonly Formula[] }
  | { kind: 'atom'; atom: Atom }
  /** An expression over the facts of a call only, which is evaluated once per call. */
  | { kind: 'constant'; index: number }

/** Like a formula, with the places where only the whole text can decide. */
export type Outline =
  | { kind: 'and' | 'or'; parts: readonly Outline[] }
  | Extract<Formula, { kind: 'atom' | 'constant' }>
  | { kind: 'whole' }

/** A wider pattern would hold back too much of an answer: its rule waits for all of it. */
const streamedWidthMax = 512

const whole: Outline = { kind: 'whole' }

/** What the outline of an expression is made from, and the constants that are found on the way. */
type OutlineSources = {
  shapes: ReadonlyMap<string, PatternShape>
  literals: ReadonlyMap<string, string>
  /** The source of each constant. */
  constants: string[]
}

/** How plain language depends on it, and the gate before it if there is one. */
export function judgedOutlineOf(gate: ASTNode | null, sources: OutlineSources): Outline {
  const judged = ofAtom({ kind: 'judged' })
  return gate ? join('and', [outlineOf(gate, sources), judged]) : judged
}

/** How an expression of type bool depends on the text of an answer. */
export function outlineOf(node: ASTNode, sources: OutlineSources): Outline {
  if (!readsText(node)) {
    return { kind: 'constant', index: sources.constants.push(printPart(node)) - 1 }
  }
  switch (node.op) {
    case '&&':
      return join('and', [outlineOf(node.args[0], sources), outlineOf(node.args[1], sources)])
    case '||':
      return join('or', [outlineOf(node.args[0], sources), outlineOf(node.args[1], sources)])
    case 'rcall':
      // Loops and the methods of strings read the text only in their parts.
      return isTextItself(node.args[1])
        ? outlineOfMethod(node.args[0], node.args[2], sources)
        : whole
    case '>':
    case '>=':
      return outlineOfComparison(node.args[0], node.args[1], node.op === '>=')
    case '<':
    case '<=':
      return outlineOfComparison(node.args[1], node.args[0], node.op === '<=')
    default:
      return whole
  }
}

/** The outline itself, if no part of it needs the whole text. */
export function formulaOf(outline: Outline): Formula | null {
  if (outline.kind === 'whole') return null
  if (!('parts' in outline)) return outline
  const parts = outline.parts.map(formulaOf)
  return parts.every((part) => part !== null) ? { kind: outline.kind, parts } : null
}

/** In an answer `system` and `last_message` are facts of the call; only `text` grows. */
export function readsText(node: ASTNode): boolean {
  if (node.op === 'id') return node.args === 'text'
  if (node.op === 'call' && (node.args[0] === 'score' || node.args[0] === 'pii')) return true
  return childrenOf(node).some(readsText)
}

function join(kind: 'and' | 'or', outlines: readonly Outline[]): Outline {
  return { kind, parts: outlines.flatMap((one) => (one.kind === kind ? one.parts : [one])) }
}

/** Of a method of `text`. */
function outlineOfMethod(
  name: string,
  args: readonly ASTNode[],
  { shapes, literals }: OutlineSources,
): Outline {
  const [first] = args
  const written = first?.op === 'value' && typeof first.args === 'string' ? first.args : ''
  if (name === 'matches') {
    const shape = shapes.get(written)
    const isStreamed = shape && !shape.needsEnd && shape.width <= streamedWidthMax
    return isStreamed ? ofAtom({ kind: 'pattern', pattern: written }) : whole
  }
  const texts =
    name === 'contains'
      ? [written]
      : name === 'containsAny' && textsOfList(args)?.map(([text]) => text)
  if (!texts) return whole
  const parts = texts.map((text) => ofAtom({ kind: 'literal', text: literals.get(text) ?? text }))
  return parts[0] && parts.length === 1 ? parts[0] : { kind: 'or', parts }
}

const ofAtom = (atom: Atom): Outline => ({ kind: 'atom', atom })

/** Of `large > small` or `large >= small`. */
function outlineOfComparison(large: ASTNode, small: ASTNode, isInclusive: boolean): Outline {
  if (small.op !== 'value') return whole
  const bound = small.args
  const atLeast = typeof bound === 'bigint' ? Number(bound) + (isInclusive ? 0 : 1) : null
  if (large.op === 'rcall' && large.args[0] === 'size' && isTextItself(large.args[1])) {
    return atLeast === null ? whole : ofAtom({ kind: 'size', atLeast })
  }
  const entity = argumentOf(large, 'pii')
  if (entity !== null && isEntityKind(entity)) {
    // One that is always true is not worth an atom.
    return atLeast === null || atLeast < 1 ? whole : ofAtom({ kind: 'entity', entity, atLeast })
  }
  const category = argumentOf(large, 'score')
  if (category === null) return whole
  if (typeof bound !== 'bigint' && typeof bound !== 'number') return whole
  const above = Number(bound)
  // Nothing has been scored in an empty answer, and its scores are 0.
  if (above < 0 || (above === 0 && isInclusive)) return whole
  return ofAtom({ kind: 'score', category: scoredAs(category), above, isInclusive })
}

/** The text in quotes that a function is asked for; null for anything else. */
function argumentOf(node: ASTNode, name: string): string | null {
  const argument = node.op === 'call' && node.args[0] === name ? node.args[1][0]?.args : null
  return typeof argument === 'string' ? argument : null
}

const isTextItself = (node: ASTNode) => node.op === 'id' && node.args === 'text'

/**
 * Writes a part of an accepted expression as an expression of its own. Every operation gets brackets, so that nothing
 * depends on precedence; values are copied from the source. (The library's own printer loses brackets and digits.)
 */
function printPart(node: ASTNode): string {
  const printAll = (nodes: readonly ASTNode[]) => nodes.map(printPart).join(', ')
  switch (node.op) {
    case 'value':
      return node.input.slice(node.start, node.end)
    case 'id':
      return node.args
    case 'list':
      return `[${printAll(node.args)}]`
    case 'call':
      return `${node.args[0]}(${printAll(node.args[1])})`
    case 'rcall':
      return `(${printPart(node.args[1])}).${node.args[0]}(${printAll(node.args[2])})`
    case '[]':
      return `(${printPart(node.args[0])})[${printPart(node.args[1])}]`
    case '!_':
      return `(!${printPart(node.args)})`
    case '-_':
      return `(-${printPart(node.args)})`
    case '?:': {
      const [condition, one, other] = node.args
      return `(${printPart(condition)} ? ${printPart(one)} : ${printPart(other)})`
    }
    case '.':
    case '.?':
    case '[?]':
    case 'map':
      throw new Error(`An accepted expression has no '${node.op}'.`)
    default:
      return `(${printPart(node.args[0])} ${node.op} ${printPart(node.args[1])})`
  }
}
