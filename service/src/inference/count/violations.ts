import type { SchemaViolation } from '@gatehouse/contract/error-body'
import type { z } from 'zod'

import { meantIssues } from '#http/validate.ts'

type Issue = z.core.$ZodIssue
type Rule = { type: string; msg: string; ctx?: Record<string, unknown> }

const violationsMax = 20
const stepMaxLength = 100
const inputMaxLength = 200

/** The violations of a schema in the form of docs/specification/errors.md#count-tokens-body. */
export function toViolations(issues: readonly Issue[], body: unknown): SchemaViolation[] {
  return issues
    .slice(0, violationsMax)
    .flatMap((issue) => meantIssues(issue, violationsMax))
    .flatMap(splitUnknownMembers)
    .slice(0, violationsMax)
    .map((issue) => toViolation(issue, body))
}

/** Each unknown member is a violation of its own. */
const splitUnknownMembers = (issue: Issue): Issue[] =>
  issue.code === 'unrecognized_keys'
    ? issue.keys.map((key) => ({ ...issue, keys: [key], path: [...issue.path, key] }))
    : [issue]

function toViolation(issue: Issue, body: unknown): SchemaViolation {
  const { parent, input } = find(body, issue.path)
  const loc = ['body', ...issue.path.map(toStep)]
  if (input === undefined) {
    return { loc, msg: 'Field required', type: 'missing', input: echo(parent) }
  }
  const { type, msg, ctx } = toRule(issue, input)
  return { loc, msg, type, input: echo(input), ...(ctx && { ctx }) }
}

const toStep = (step: PropertyKey) =>
  typeof step === 'number' ? step : String(step).slice(0, stepMaxLength).toWellFormed()

/** The value at a path, and its parent. */
function find(body: unknown, path: readonly PropertyKey[]): { parent: unknown; input: unknown } {
  let parent: unknown = null
  let input = body
  for (const step of path) {
    parent = input
    const isContainer = typeof input === 'object' && input !== null && Object.hasOwn(input, step)
    input = isContainer ? (input as Record<PropertyKey, unknown>)[step] : undefined
  }
  return { parent, input }
}

/** A short input unchanged. A long string is cut; a long object or list becomes a placeholder. */
function echo(input: unknown): unknown {
  if (typeof input === 'string') return input.slice(0, inputMaxLength).toWellFormed()
  if (typeof input !== 'object' || input === null) return input ?? null
  try {
    let left = inputMaxLength
    const text = JSON.stringify(input, (key, value: unknown) => {
      left -= key.length + (typeof value === 'string' ? value.length : 1)
      if (left < 0) throw new RangeError('The input is too long to be repeated.')
      return value
    })
    if (text.length <= inputMaxLength) return JSON.parse(text)
  } catch {
    // Too long.
  }
  return Array.isArray(input) ? '[…]' : '{…}'
}

function toRule(issue: Issue, input: unknown): Rule {
  switch (issue.code) {
    case 'invalid_type':
      return typeRule(issue.expected, input)
    case 'too_small':
      return tooSmall(issue.origin, Number(issue.minimum), lengthOf(input))
    case 'too_big':
      return tooBig(issue.origin, Number(issue.maximum), lengthOf(input))
    case 'invalid_value': {
      const expected = oneOf(issue.values.map((value) => `'${String(value)}'`))
      return { type: 'literal_error', msg: `Input should be ${expected}`, ctx: { expected } }
    }
    case 'invalid_union':
      return { type: 'union_tag_invalid', msg: 'Input tag is none of the expected tags' }
    case 'unrecognized_keys':
      return { type: 'extra_forbidden', msg: 'Extra inputs are not permitted' }
    default:
      return { type: 'value_error', msg: 'Value error' }
  }
}

const lengthOf = (input: unknown) =>
  typeof input === 'string' || Array.isArray(input) ? input.length : 0

const oneOf = (names: readonly string[]) =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`

function typeRule(expected: string, input: unknown): Rule {
  switch (expected) {
    case 'string':
      return { type: 'string_type', msg: 'Input should be a valid string' }
    case 'array':
      return { type: 'list_type', msg: 'Input should be a valid list' }
    case 'object':
    case 'record':
      return { type: 'dict_type', msg: 'Input should be a valid dictionary' }
    case 'boolean':
      return { type: 'bool_type', msg: 'Input should be a valid boolean' }
    case 'int':
    case 'number':
      return numberRule(input)
    case 'string or array':
      return { type: 'string_type', msg: 'Input should be a valid string or a valid list' }
    default:
      return { type: 'value_error', msg: 'Value error' }
  }
}

/** Every number in the body of this endpoint is an integer. */
function numberRule(input: unknown): Rule {
  const msg = 'Input should be a valid integer'
  if (typeof input === 'string') {
    return { type: 'int_parsing', msg: `${msg}, unable to parse string as an integer` }
  }
  if (typeof input === 'number') {
    return { type: 'int_from_float', msg: `${msg}, got a number with a fractional part` }
  }
  return { type: 'int_type', msg }
}

function tooSmall(origin: string, minimum: number, length: number): Rule {
  if (origin === 'string') {
    const msg = `String should have at least ${count(minimum, 'character')}`
    return { type: 'string_too_short', msg, ctx: { min_length: minimum } }
  }
  if (origin === 'array') {
    const msg = `List should have at least ${count(minimum, 'item')} after validation, not ${length}`
    const ctx = { field_type: 'List', min_length: minimum, actual_length: length }
    return { type: 'too_short', msg, ctx }
  }
  const msg = `Input should be greater than or equal to ${minimum}`
  return { type: 'greater_than_equal', msg, ctx: { ge: minimum } }
}

function tooBig(origin: string, maximum: number, length: number): Rule {
  if (origin === 'string') {
    const msg = `String should have at most ${count(maximum, 'character')}`
    return { type: 'string_too_long', msg, ctx: { max_length: maximum } }
  }
  if (origin === 'array') {
    const msg = `List should have at most ${count(maximum, 'item')} after validation, not ${length}`
    const ctx = { field_type: 'List', max_length: maximum, actual_length: length }
    return { type: 'too_long', msg, ctx }
  }
  const msg = `Input should be less than or equal to ${maximum}`
  return { type: 'less_than_equal', msg, ctx: { le: maximum } }
}

const count = (amount: number, what: string) => `${amount} ${what}${amount === 1 ? '' : 's'}`
