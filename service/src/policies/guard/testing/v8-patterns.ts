import type { PatternSet } from '#text/pattern-engine.ts'

/** The patterns of tests, which are the same in JavaScript's dialect but for a leading `(?i)`. Quick to build and to run. */
export function createV8Patterns(patterns: readonly string[]): PatternSet {
  const expressions = patterns.map(compile)
  return {
    hits: (text) =>
      [...expressions.keys()].filter((pattern) => find(expressions[pattern]!, text, 0)),
    find: (pattern, text, from) => find(expressions[pattern]!, text, from),
  }
}

const compiled = new Map<string, RegExp>()

function compile(pattern: string): RegExp {
  const known = compiled.get(pattern)
  if (known) return known
  const isInsensitive = pattern.startsWith('(?i)')
  const source = isInsensitive ? pattern.slice('(?i)'.length) : pattern
  const expression = new RegExp(source, isInsensitive ? 'giu' : 'gu')
  compiled.set(pattern, expression)
  return expression
}

function find(expression: RegExp, text: string, from: number) {
  expression.lastIndex = from
  const match = expression.exec(text)
  return match && { start: match.index, end: match.index + match[0].length }
}
