import { BoundedMap } from '#platform/bounded-map.ts'
import { finish, type Steps } from '#platform/steps/steps.ts'
import { entityHold } from '#redaction/entity.ts'
import { type LiteralScan, LiteralSet } from '#text/literal-set.ts'
import type { PatternEngine, PatternSet } from '#text/pattern-engine.ts'
import type { SearchElsewhere } from '#text/pattern-set.ts'
import type { PatternShape } from '#text/pattern-shape.ts'

import type { ExpressionContext, TextVariable } from './facts.ts'
import type { Atom, EntityAtom, Outline, ScoreAtom } from './formula.ts'
import { joinPatterns, searchElsewhere } from './pattern-search.ts'
import type { CompiledRule } from './rule-program.ts'
import { toBasisPoints } from './score.ts'
import type { SetRule } from './set-rule.ts'

/** What the guard of one answer needs. The numbers in formulas are places in the sets. */
export type AnswerRules<Ending extends AnswerEnding = AnswerRule> = {
  readonly patterns: PatternSet
  readonly patternCount: number
  /** For the same patterns, if there are any, outside of the event loop. */
  readonly elsewhere?: SearchElsewhere | undefined
  readonly literals: LiteralSet
  readonly scores: readonly WindowAtom[]
  readonly entities: readonly EntityAtom[]
  /** Opens a scan for one text, where a rule looks for terms in any case. What it finds counts as one atom. */
  readonly scanTerms?: () => LiteralScan
  /**
   * The most characters that enforcing rules hold back, besides those that wait for scorers and the judge; 'full' if one of
   * them needs the whole answer, 'none' if none of them reads its text.
   */
  readonly hold: number | 'full' | 'none'
  /** The widest pattern of the enforcing formulas, 0 without. */
  readonly patternHold: number
  readonly rules: readonly Ending[]
}

/** What is asked of each window: a score, or the plain language of a rule, which is given by its place in the set. */
export type WindowAtom = ScoreAtom | { readonly kind: 'judged'; readonly rule: number }

/** Something that ends an answer: a rule of the set, or what else a call is checked for. */
export type AnswerEnding = {
  /** Of a rule: its place in `RuleSet.rules`. */
  readonly index?: number
  readonly isEnforcing: boolean
  /** Null: the rule is evaluated at the end. */
  readonly formula: AnswerFormula | null
  /** A constant of the rule has no value, as 1 / 0, and counts as true. */
  readonly isError?: boolean
}

export type AnswerRule = AnswerEnding & { readonly index: number }

export type AnswerFormula =
  | { kind: 'and' | 'or'; parts: readonly AnswerFormula[] }
  | { kind: 'pattern'; pattern: number }
  | { kind: 'literal'; literal: number }
  | { kind: 'size'; atLeast: number }
  | { kind: 'term' }
  | { kind: 'score' | 'entity'; atom: number }
  | { kind: 'constant'; value: boolean }

/** A formula before it is known whether a place that needs the whole answer still counts. */
type Resolved =
  | { kind: 'and' | 'or'; parts: readonly Resolved[] }
  | Exclude<AnswerFormula, { kind: 'and' | 'or' }>
  | { kind: 'whole' }

/** Each pattern, literal, score and count of the enforcing rules once, with its number. */
type Numbers = {
  patterns: Map<string, number>
  literals: Map<string, number>
  scores: Map<string, { number: number; atom: WindowAtom }>
  entities: Map<string, { number: number; atom: EntityAtom }>
  /** Of the patterns, in the order of their numbers. */
  shapes: Map<string, PatternShape>
}

/** How many of the different rules that answers meet are kept. Most calls have the same constants. */
const openedMax = 64

export type AnswerOpener = {
  /** Compiles what the guards of all answers share. Otherwise the first answer does it, all at once. */
  prepare(): Steps<void>
  /** Called at the start of each answer. */
  open(context: ExpressionContext): Steps<AnswerRules>
}

/** Prepares a set of rules once. */
export function* createAnswerRules(
  rules: readonly SetRule[],
  engine: PatternEngine,
): Steps<AnswerOpener> {
  const numbers = createNumbers()
  const enforcing = rules.filter(isDecidedInAnswer)
  for (const [index, each] of rules.entries()) {
    if (isDecidedInAnswer(each)) addAtoms(each.rule.outline, { rule: each.rule, index }, numbers)
    yield
  }
  const withConstants = enforcing.filter(({ rule }) => rule.constants.length > 0)
  const texts = textsOfConstants(withConstants)
  const opened = new BoundedMap<string, AnswerRules>(openedMax)
  let sets: Pick<AnswerRules, 'patterns' | 'elsewhere' | 'literals'> | null = null

  /** Rules that only see requests never need these sets. */
  function* prepare() {
    sets ??= {
      patterns: yield* joinPatterns(numbers.shapes, engine),
      elsewhere: searchElsewhere(numbers.shapes, engine),
      literals: yield* LiteralSet.buildInSteps([...numbers.literals.keys()]),
    }
    return sets
  }

  function open(values: ReadonlyMap<SetRule, readonly ConstantValue[]>): AnswerRules {
    const answerRules = rules.flatMap((rule, index) =>
      openRule({ rule, index, values: values.get(rule) ?? [], numbers }),
    )
    return {
      ...finish(prepare()), // done before, unless this is the first answer
      patternCount: numbers.patterns.size,
      scores: [...numbers.scores.values()].map(({ atom }) => atom),
      entities: [...numbers.entities.values()].map(({ atom }) => atom),
      ...holdOf(answerRules, numbers),
      rules: answerRules,
    }
  }

  function* openInSteps(context: ExpressionContext): Steps<AnswerRules> {
    for (const name of texts) yield* context[name].readInSteps()
    const values = new Map<SetRule, ConstantValue[]>()
    for (const rule of withConstants) {
      values.set(rule, valuesOf(rule, context))
      yield
    }
    const key = [...values.values()].join()
    const known = opened.get(key)
    if (known) return known
    const made = open(values)
    opened.set(key, made)
    return made
  }

  return {
    open: openInSteps,
    *prepare() {
      yield* prepare()
    },
  }
}

const createNumbers = (): Numbers => ({
  patterns: new Map(),
  literals: new Map(),
  scores: new Map(),
  entities: new Map(),
  shapes: new Map(),
})

/** The texts that constants may ask for. They are known before an answer begins, so its own text is not among them. */
const textsOfConstants = (rules: readonly SetRule[]): TextVariable[] => {
  const names = new Set(rules.flatMap(({ rule }) => [...rule.texts]))
  names.delete('text')
  return [...names]
}

/** An error is a value here: 1 / 0 has no other. */
type ConstantValue = boolean | 'error'

const valuesOf = ({ rule, threshold }: SetRule, context: ExpressionContext): ConstantValue[] =>
  rule.constants.map((evaluate) => {
    try {
      return toBasisPoints(evaluate(context)) >= threshold
    } catch {
      return 'error'
    }
  })

const isDecidedInAnswer = ({ mode }: SetRule): boolean => mode === 'enforcing'

type Placed = { rule: CompiledRule; index: number }

function addAtoms(outline: Outline, placed: Placed, numbers: Numbers): void {
  if (outline.kind === 'and' || outline.kind === 'or') {
    for (const part of outline.parts) addAtoms(part, placed, numbers)
  }
  if (outline.kind !== 'atom') return
  const { atom } = outline
  const { rule, index } = placed
  if (atom.kind === 'pattern') {
    number(numbers.patterns, atom.pattern)
    const unknown = { width: Infinity, needsEnd: true }
    numbers.shapes.set(atom.pattern, rule.shapes.get(atom.pattern) ?? unknown)
  } else if (atom.kind === 'literal') {
    number(numbers.literals, atom.text)
  } else if (atom.kind === 'entity') {
    addAtom(numbers.entities, keyOfEntity(atom), atom)
  } else if (atom.kind !== 'size') {
    const asked = atom.kind === 'judged' ? { ...atom, rule: index } : atom
    addAtom(numbers.scores, keyOf(asked), asked)
  }
}

function addAtom<A>(map: Map<string, { number: number; atom: A }>, key: string, atom: A) {
  if (!map.has(key)) map.set(key, { number: map.size, atom })
}

const number = (map: Map<string, number>, key: string) => {
  if (!map.has(key)) map.set(key, map.size)
}

const keyOf = (atom: WindowAtom) =>
  atom.kind === 'judged' ? `${atom.rule}` : `${atom.category} ${atom.above} ${atom.isInclusive}`

const keyOfEntity = ({ entity, atLeast }: EntityAtom) => `${entity} ${atLeast}`

type Opening = {
  rule: SetRule
  index: number
  /** Of the rule's constants. */
  values: readonly ConstantValue[]
  numbers: Numbers
}

/** A rule of the set as one answer meets it; none if it cannot match any more. */
function openRule({ rule, index, values, numbers }: Opening): AnswerRule[] {
  if (!isDecidedInAnswer(rule)) return [{ index, isEnforcing: false, formula: null }]
  let isError = false
  const resolved = resolve(rule.rule.outline, {
    numbers,
    index,
    valueOf(constant) {
      const value = values[constant] ?? true
      if (value === 'error') isError = true
      return value !== false
    },
  })
  if (resolved.kind === 'constant' && !resolved.value) return []
  const formula = withoutWhole(resolved)
  return [{ index, isEnforcing: true, formula, isError }]
}

/** `index`: of the rule in the set. */
type Resolution = { numbers: Numbers; index: number; valueOf(constant: number): boolean }

/** Puts in the values of constants, and leaves out what they decide. */
function resolve(outline: Outline, resolution: Resolution): Resolved {
  switch (outline.kind) {
    case 'constant':
      return { kind: 'constant', value: resolution.valueOf(outline.index) }
    case 'atom':
      return resolveAtom(outline.atom, resolution)
    case 'whole':
      return outline
    case 'and':
    case 'or':
  }
  const deciding = outline.kind === 'or'
  const parts: Resolved[] = []
  for (const part of outline.parts) {
    const resolved = resolve(part, resolution)
    if (resolved.kind !== 'constant') parts.push(resolved)
    else if (resolved.value === deciding) return resolved
  }
  const [only] = parts
  if (!only) return { kind: 'constant', value: !deciding }
  return parts.length === 1 ? only : { kind: outline.kind, parts }
}

function resolveAtom(atom: Atom, { numbers, index }: Resolution): Resolved {
  const { patterns, literals, scores, entities } = numbers
  switch (atom.kind) {
    case 'pattern':
      return { kind: 'pattern', pattern: requireNumbered(patterns.get(atom.pattern)) }
    case 'literal':
      return { kind: 'literal', literal: requireNumbered(literals.get(atom.text)) }
    case 'score':
      return { kind: 'score', atom: requireNumbered(scores.get(keyOf(atom))?.number) }
    case 'entity':
      return { kind: 'entity', atom: requireNumbered(entities.get(keyOfEntity(atom))?.number) }
    case 'judged':
      return {
        kind: 'score',
        atom: requireNumbered(scores.get(keyOf({ ...atom, rule: index }))?.number),
      }
    case 'size':
      return atom
  }
}

/** All atoms of a set's rules were numbered when the set was built. */
function requireNumbered<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('A condition of a rule was not numbered.')
  return found
}

function withoutWhole(resolved: Resolved): AnswerFormula | null {
  if (resolved.kind === 'whole') return null
  if (!('parts' in resolved)) return resolved
  const parts = resolved.parts.map(withoutWhole)
  return parts.every((part) => part !== null) ? { kind: resolved.kind, parts } : null
}

function holdOf(rules: readonly AnswerRule[], numbers: Numbers) {
  const enforcing = rules.filter(({ isEnforcing }) => isEnforcing)
  const atoms = enforcing.flatMap(({ formula }) => (formula ? atomsOf(formula) : []))
  const widths = [...numbers.shapes.values()].map(({ width }) => width)
  const lengths = [...numbers.literals.keys()].map(({ length }) => length)
  // One by one: there may be more than a function takes as arguments.
  let [patternHold, literalHold] = [0, 0]
  for (const atom of atoms) {
    if (atom.kind === 'pattern')
      patternHold = Math.max(patternHold, requireNumbered(widths[atom.pattern]))
    if (atom.kind === 'literal')
      literalHold = Math.max(literalHold, requireNumbered(lengths[atom.literal]) - 1)
  }
  if (enforcing.some(({ formula }) => !formula)) return { hold: 'full', patternHold } as const
  if (atoms.every(({ kind }) => kind === 'constant')) return { hold: 'none', patternHold } as const
  const countHold = atoms.some(({ kind }) => kind === 'entity') ? entityHold : 0
  return { hold: Math.max(patternHold, literalHold, countHold), patternHold }
}

function atomsOf(formula: AnswerFormula): AnswerFormula[] {
  return formula.kind === 'and' || formula.kind === 'or'
    ? formula.parts.flatMap(atomsOf)
    : [formula]
}
