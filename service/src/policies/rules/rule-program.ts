import { finish, type Steps } from '#platform/steps/steps.ts'
import type { RuleProblem } from '#policies/rule.ts'
import type { EntityKind } from '#redaction/entity.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'
import {
  checkPattern,
  type PatternComplaint,
  type PatternShape,
  readPatternShape,
} from '#text/pattern-shape.ts'

import { Complaint, placeComplaint } from './complaint.ts'
import { compilePart, type Expression, readExpression } from './expression.ts'
import type { TextVariable } from './facts.ts'
import {
  type Formula,
  formulaOf,
  judgedOutlineOf,
  type Outline,
  outlineOf,
  readsText,
} from './formula.ts'
import { findFormProblem, readRule } from './read-rule.ts'

/** A rule that was accepted, ready to become part of a rule set. */
export type CompiledRule = {
  readonly form: 'expression' | 'gated' | 'plain'
  /** What a judge is asked; empty for an expression. */
  readonly plain: string
  readonly needs: { readonly scores: boolean; readonly judge: boolean }
  /** All patterns, on any variable of type Text. */
  readonly patterns: readonly string[]
  readonly shapes: ReadonlyMap<string, PatternShape>
  /** Where in the text of the rule each pattern is first written, in that order. */
  readonly patternOffsets: ReadonlyMap<string, number>
  /** All literals, normalised. */
  readonly literals: readonly string[]
  /** The literals as they are written, and normalised. */
  readonly literalForms: ReadonlyMap<string, string>
  /** Whose scores the expression reads. */
  readonly categories: ReadonlySet<string>
  /** The kinds of personal data and secrets that the expression counts. */
  readonly entities: ReadonlySet<EntityKind>
  readonly texts: ReadonlySet<TextVariable>
  readonly asksSize: boolean
  /** How a growing answer decides the rule; null if it does not. */
  readonly formula: Formula | null
  /** The same, with the places that need the whole answer. */
  readonly outline: Outline
  /** The constants of the formula. */
  readonly constants: readonly Expression['evaluate'][]
  /** The expression, or the gate; null for plain language. */
  readonly evaluate: Expression['evaluate'] | null
}

type ReadShape = (pattern: string) => PatternShape | PatternComplaint

/** Reads, type-checks and bounds a rule. What its patterns cost is not measured here. */
export function compileRule(rule: string, engine: PatternEngine): CompiledRule | RuleProblem {
  return finish(compileRuleInSteps(rule, engine))
}

/** The same in steps, each of which compiles one pattern. */
export function compileRuleInSteps(
  rule: string,
  engine: PatternEngine,
): Steps<CompiledRule | RuleProblem> {
  return readProgram(rule, (pattern) => checkPattern(engine, pattern))
}

/** The same without an engine, which may take long to compile patterns, and which may refuse some that are read here. */
export function readUncompiled(rule: string): Pick<CompiledRule, 'patternOffsets'> | RuleProblem {
  return finish(readProgram(rule, readPatternShape))
}

function* readProgram(rule: string, readShape: ReadShape): Steps<CompiledRule | RuleProblem> {
  const read = readRule(rule)
  const problem = findFormProblem(read)
  if (problem) return problem
  if (read.form === 'plain') return { ...plainRule, plain: read.plain }
  try {
    return yield* compileExpression(read, read.form, readShape)
  } catch (thrown) {
    if (!(thrown instanceof Complaint)) throw thrown
    return placeComplaint(rule, read.exactOffset + thrown.offset, thrown.message)
  }
}

const judgedOutline = judgedOutlineOf(null, {
  shapes: new Map(),
  literals: new Map(),
  constants: [],
})

const plainRule: CompiledRule = {
  form: 'plain',
  plain: '',
  needs: { scores: false, judge: true },
  patterns: [],
  shapes: new Map(),
  patternOffsets: new Map(),
  literals: [],
  literalForms: new Map(),
  categories: new Set(),
  entities: new Set(),
  texts: new Set(),
  asksSize: false,
  formula: formulaOf(judgedOutline),
  outline: judgedOutline,
  constants: [],
  evaluate: null,
}

function* compileExpression(
  { exact, exactOffset, plain }: { exact: string; exactOffset: number; plain: string },
  form: 'expression' | 'gated',
  readShape: ReadShape,
): Steps<CompiledRule> {
  const { tree, type, wants, evaluate } = readExpression(exact)
  if (form === 'gated' && type !== 'bool') {
    throw new Complaint("the expression after 'when:' must be true or false", tree.start)
  }
  const shapes = yield* readShapes(wants.patterns, readShape)
  const sources = { shapes, literals: wants.literals, constants: [] as string[] }
  // A number depends on the text in ways that no formula expresses.
  const isOutlined = type === 'bool' || !readsText(tree)
  const outlineIn = form === 'gated' ? judgedOutlineOf : outlineOf
  const outline: Outline = isOutlined ? outlineIn(tree, sources) : { kind: 'whole' }
  return {
    form,
    plain: plain.trim(),
    needs: { scores: wants.categories.size > 0, judge: form === 'gated' },
    patterns: [...shapes.keys()],
    shapes,
    patternOffsets: findFirstOffsets(wants.patterns, exactOffset),
    literals: [...new Set(wants.literals.values())],
    literalForms: wants.literals,
    categories: wants.categories,
    entities: wants.entities,
    texts: wants.texts,
    asksSize: wants.asksSize,
    formula: formulaOf(outline),
    outline,
    constants: sources.constants.map(compilePart),
    evaluate,
  }
}

function findFirstOffsets(
  patterns: readonly { pattern: string; offset: number }[],
  exactOffset: number,
): Map<string, number> {
  const offsets = new Map<string, number>()
  for (const { pattern, offset } of patterns) {
    if (!offsets.has(pattern)) offsets.set(pattern, exactOffset + offset)
  }
  return offsets
}

function* readShapes(
  patterns: readonly { pattern: string; offset: number }[],
  readShape: ReadShape,
): Steps<Map<string, PatternShape>> {
  const shapes = new Map<string, PatternShape>()
  for (const { pattern, offset } of patterns) {
    const shape = shapes.get(pattern) ?? readShape(pattern)
    if ('problem' in shape) {
      throw new Complaint(describeComplaint(shape), offset)
    }
    shapes.set(pattern, shape)
    yield
  }
  return shapes
}

export const describeComplaint = ({ problem, offset }: PatternComplaint) =>
  `in the pattern, at its character ${offset + 1}: ${problem}`
