import type { z } from 'zod'

import { ApiError } from '#platform/api-error.ts'

type Issue = z.core.$ZodIssue

export type Place = 'path' | 'query' | 'header' | 'body'

/** Parses one part of a request; the first violation becomes a 422 that names it (G7.1, G4.11). */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  place: Place,
  value: unknown,
): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw issue ? toError(issue, place, value) : new ApiError('invalid_parameter', 'Invalid.')
}

function toError(issue: Issue, place: Place, value: unknown): ApiError {
  const path = [...issue.path]
  if (issue.code === 'unrecognized_keys') {
    const param = toParam(place, [...path, issue.keys[0] ?? ''])
    return new ApiError('unknown_field', `'${param}' is not a known member.`, { param })
  }
  const param = toParam(place, path)
  if (path.length > 0 && isMissing(value, path)) {
    return new ApiError('missing_field', `'${param}' is required.`, { param })
  }
  return new ApiError('invalid_parameter', `'${param}' ${explain(issue)}.`, { param })
}

/** Which member is wrong, and the rule it breaks as the end of a sentence that starts with its name. */
export function explainIssue(issue: Issue, value: unknown): { path: PropertyKey[]; rule: string } {
  const [meant = issue] = meantIssues(issue, 1)
  const { path } = meant
  const isAbsent = path.length > 0 && isMissing(value, path)
  return { path, rule: isAbsent ? 'is required' : explain(meant) }
}

/**
 * Of the alternatives of a union, the one that fits furthest is what the caller meant: its issues, of which
 * at most `issuesMax` are looked at. A value of none of the kinds is told all of them.
 */
export function meantIssues(issue: Issue, issuesMax: number): Issue[] {
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return [issue]
  const branches = issue.errors.map((issues) =>
    issues.slice(0, issuesMax).flatMap((inner) => meantIssues(inner, issuesMax)),
  )
  const kinds = branches.flatMap(([first]) => kindWanted(first))
  if (kinds.length === branches.length) {
    const { path, message } = issue
    return [{ code: 'invalid_type', expected: kinds.join(' or ') as 'string', path, message }]
  }
  const [furthest = []] = branches.toSorted((left, right) => depthOf(right) - depthOf(left))
  return furthest.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }))
}

const kindWanted = (issue: Issue | undefined): string[] =>
  issue?.code === 'invalid_type' && issue.path.length === 0 ? [issue.expected] : []

const depthOf = (issues: readonly Issue[]) =>
  issues.reduce((depth, { path }) => Math.max(depth, path.length), 0)

const paramMaxLength = 120

/** `body.project_ids[3]`, bounded: names come from the caller. */
export function toParam(place: Place, path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
  return `${place}${steps.join('')}`.slice(0, paramMaxLength)
}

function isMissing(value: unknown, path: readonly PropertyKey[]): boolean {
  let current = value
  for (const step of path) {
    if (typeof current !== 'object' || current === null) return false
    current = (current as Record<PropertyKey, unknown>)[step]
  }
  return current === undefined
}

/** One rule as the end of a sentence that starts with the parameter's name. */
function explain(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${article(issue.expected)}`
    case 'too_small':
      return `must ${amount(issue.origin, 'at least', issue.minimum)}`
    case 'too_big':
      return `must ${amount(issue.origin, 'at most', issue.maximum)}`
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}`
    case 'custom':
    case 'invalid_format':
      return issue.message.startsWith('must') ? issue.message : 'has the wrong form'
    default:
      return 'has a value that is not allowed'
  }
}

function amount(origin: string, bound: string, count: number | bigint): string {
  if (origin === 'string') return `have ${bound} ${count} characters`
  return origin === 'array' ? `have ${bound} ${count} items` : `be ${bound} ${count}`
}

function article(type: string): string {
  const name = type === 'int' ? 'integer' : type
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}
