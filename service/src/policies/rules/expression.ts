import { type ASTNode, Environment, type ParseResult } from '@marcbachmann/cel-js'

import type { EntityKind } from '#redaction/entity.ts'

import { Complaint } from './complaint.ts'
import { collectWants, treeLimits, type Wants } from './expression-limits.ts'
import { type ExpressionContext, scoresName, variables } from './facts.ts'
import { type ExpressionValue, scoredAs, type ScoreMap } from './score.ts'
import { Text } from './text.ts'

/** What an expression results in; the library writes integers as bigint. */
type ResultType = 'bool' | 'int' | 'double'

export type Expression = {
  readonly tree: ASTNode
  readonly type: ResultType
  readonly wants: Wants
  /** Throws if the expression has no value, as 1 / 0. */
  evaluate(context: ExpressionContext): ExpressionValue
}

const expressionMaxLength = 4000

/** Reads an expression of a rule and checks it against all limits; throws a complaint. */
export function readExpression(source: string): Expression {
  if (source.length > expressionMaxLength) {
    throw new Complaint(`an expression has at most ${expressionMaxLength} characters`, 0)
  }
  try {
    const program = environment.parse(source)
    const wants = collectWants(program.ast)
    return { tree: program.ast, type: typeOf(program), wants, evaluate: program }
  } catch (thrown) {
    throw toComplaint(thrown)
  }
}

/** Compiles a part of an accepted expression, which needs no limits any more. */
export function compilePart(source: string): Expression['evaluate'] {
  const program = partEnvironment.parse(source)
  typeOf(program)
  return program
}

function typeOf(program: ParseResult): ResultType {
  const { valid, type, error } = program.check()
  if (!valid) throw error ?? new Error('The type checker gave no reason.')
  if (type === 'bool' || type === 'int' || type === 'double') return type
  throw new Complaint(`the result must be true, false or a number, and is of type ${type}`, 0)
}

function toComplaint(thrown: unknown): unknown {
  if (thrown instanceof Complaint) return thrown
  if (thrown instanceof RangeError) return new Complaint('the expression is nested too deeply', 0)
  if (!isLibraryError(thrown)) return thrown
  const { code, summary, range } = thrown
  const words = code === 'limit_exceeded' ? explainLimit(summary) : lowerFirst(summary)
  return new Complaint(words, range?.start ?? 0)
}

type LibraryError = { code: string; summary: string; range?: { start: number } }

/** The error classes of the library cannot be told from those of JavaScript by name. */
const isLibraryError = (thrown: unknown): thrown is LibraryError =>
  thrown instanceof Error && 'code' in thrown && 'summary' in thrown

const limitTexts: Record<keyof typeof treeLimits, string> = {
  maxAstNodes: `the expression has more than ${treeLimits.maxAstNodes} parts`,
  maxDepth: `the expression is nested more than ${treeLimits.maxDepth} deep`,
  maxListElements: `a list has at most ${treeLimits.maxListElements} elements`,
  maxMapEntries: 'an expression cannot contain a map',
  maxCallArguments: `a function has at most ${treeLimits.maxCallArguments} arguments`,
}

/** The library names only the limit: `Exceeded maxDepth (24)`. */
const explainLimit = (summary: string) =>
  Object.entries(limitTexts).find(([name]) => summary.includes(name))?.[1] ?? lowerFirst(summary)

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

const isSync = { async: false }
type MacroCall = { args: readonly ASTNode[] }
type Values = { getValue(name: string): unknown }

/** A macro, because functions of the library do not see the context, where the scores are. */
const readScore = ({ args }: MacroCall) => ({
  args,
  async: false,
  typeCheck: (checker: { getType(name: string): unknown }) => checker.getType('double'),
  evaluate(_: unknown, call: MacroCall, values: Values): number {
    const category = call.args[0]?.args // a text in quotes: anything else was refused before
    const scores = values.getValue(scoresName) as ScoreMap | undefined
    const score = scores?.get(scoredAs(category as string))
    if (score === undefined) throw new Error('score() has no value here.')
    return score
  },
})

/** A macro too: it counts in `text`, whose name no variable of a loop can take. */
const countEntities = ({ args }: MacroCall) => ({
  args,
  async: false,
  typeCheck: (checker: { getType(name: string): unknown }) => checker.getType('int'),
  evaluate(_: unknown, call: MacroCall, values: Values): bigint {
    const kind = call.args[0]?.args // one of the kinds in quotes: anything else was refused before
    return BigInt((values.getValue('text') as Text).count(kind as EntityKind))
  },
})

function createEnvironment(limits: Partial<typeof treeLimits>) {
  const created = new Environment({ limits }).registerType('Text', { ctor: Text, fields: {} })
  for (const [name, type] of Object.entries(variables)) created.registerVariable(name, type)
  return created
    .registerFunction(
      'Text.matches(string): bool',
      (text: Text, it: string) => text.matches(it),
      isSync,
    )
    .registerFunction(
      'Text.contains(string): bool',
      (text: Text, it: string) => text.contains(it),
      isSync,
    )
    .registerFunction(
      'Text.containsAny(list<string>): bool',
      (text: Text, them: readonly string[]) => them.some((it) => text.contains(it)),
      isSync,
    )
    .registerFunction('Text.size(): int', (text: Text) => BigInt(text.size()), isSync)
    .registerFunction('score(ast): double', readScore, isSync)
    .registerFunction('pii(ast): int', countEntities, isSync)
}

const environment = createEnvironment(treeLimits)
/** A part is printed with more brackets than its author wrote. */
const partEnvironment = createEnvironment({ maxDepth: 1000 })
