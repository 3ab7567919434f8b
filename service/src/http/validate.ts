import type { z } from 'zod'

import { ApiError } from '#platform/api-error.ts'

type Issue = z.core.$ZodIssue

export type RequestPart = 'path' | 'query' | 'header' | 'body'

/** Parses one part of a request; the first violation becomes a 422 that names the parameter. */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  part: RequestPart,
  value: unknown,
): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw issue ? toError(issue, part, value) : new ApiError('invalid_parameter', 'Invalid.')
}

function toError(issue: Issue, part: RequestPart, value: unknown): ApiError {
  const path = [...issue.path]
  if (issue.code === 'unrecognized_keys') {
    const param = toParam(part, [...path, issue.keys[0] ?? ''])
    return new ApiError('unknown_field', `'${param}' is not a member of this request.`, { param })
  }
  const param = toParam(part, path)
  if (path.length > 0 && isMissing(value, path)) {
    return new ApiError('missing_field', `'${param}' is required.`, { param })
  }
  return new ApiError('invalid_parameter', `'${param}' ${explain(issue)}.`, { param })
}

/** The path of the wrong member, and the rule it breaks as the end of a sentence that starts with its name. */
export function explainIssue(issue: Issue, value: unknown): { path: PropertyKey[]; rule: string } {
  const [meant = issue] = meantIssues(issue, 1)
  const { path } = meant
  const isAbsent = path.length > 0 && isMissing(value, path)
  return { path, rule: isAbsent ? 'is required' : explain(meant) }
}

/** The same for a file that a person writes: all unknown members by name, and of a union and of a name their own rule. */
export function explainFileIssue(
  issue: Issue,
  json: unknown,
): { path: PropertyKey[]; rule: string } {
  const { path } = issue
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((name) => `'${name.slice(0, 100)}'`)
    return { path, rule: `has no member ${names.join(', ')}` }
  }
  if (issue.code === 'invalid_union' && issue.message.startsWith('must')) {
    return { path, rule: issue.message }
  }
  const [ofName] = issue.code === 'invalid_key' ? issue.issues : []
  return ofName ? { path, rule: `its name ${explain(ofName)}` } : explainIssue(issue, json)
}

/**
 * The issues of a union are those of the alternative that matches deepest, because that is the one the
 * caller meant; at most `issuesMax` per alternative are examined. A value of a wrong type gets one issue
 * that names the types of all alternatives.
 */
export function meantIssues(issue: Issue, issuesMax: number): Issue[] {
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return [issue]
  const branches = issue.errors.map((issues) =>
    issues.slice(0, issuesMax).flatMap((inner) => meantIssues(inner, issuesMax)),
  )
  const types = branches.flatMap(([first]) => expectedType(first))
  if (types.length === branches.length) {
    const { path, message } = issue
    return [{ code: 'invalid_type', expected: types.join(' or ') as 'string', path, message }]
  }
  const [deepest = []] = branches.toSorted((left, right) => depthOf(right) - depthOf(left))
  return deepest.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }))
}

const expectedType = (issue: Issue | undefined): string[] =>
  issue?.code === 'invalid_type' && issue.path.length === 0 ? [issue.expected] : []

const depthOf = (issues: readonly Issue[]) =>
  issues.reduce((depth, { path }) => Math.max(depth, path.length), 0)

const paramMaxLength = 120

/** `body.project_ids[3]`. Cut at a maximum length, because names come from the caller. */
export function toParam(part: RequestPart, path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
  return `${part}${steps.join('')}`.slice(0, paramMaxLength)
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
  // A message that a schema sets itself; zod's own messages begin otherwise.
  if (issue.message.startsWith('must')) return issue.message
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${article(issue.expected)}`
    case 'too_small':
      return `must ${amount(issue.origin, 'at least', issue.minimum)}`
    case 'too_big':
      return `must ${amount(issue.origin, 'at most', issue.maximum)}`
    case 'invalid_value':
      return `must be one of ${nameAllowed(issue.values.map(String))}`
    case 'unrecognized_keys':
      return `has the unknown member '${issue.keys[0]?.slice(0, 80)}'`
    case 'custom':
    case 'invalid_format':
      return 'has the wrong format'
    default:
      return 'has a value that is not allowed'
  }
}

/** As many of the values as a message has room for. */
function nameAllowed(values: readonly string[]): string {
  let named = values.length
  while (values.slice(0, named).join(', ').length > namedMaxLength) named--
  const rest = values.length - named
  return `${values.slice(0, named).join(', ')}${rest > 0 ? `, or of ${rest} others` : ''}`
}
const namedMaxLength = 200

function amount(origin: string, bound: string, count: number | bigint): string {
  const plural = Number(count) === 1 ? '' : 's'
  if (origin === 'string') return `have ${bound} ${count} character${plural}`
  return origin === 'array' ? `have ${bound} ${count} item${plural}` : `be ${bound} ${count}`
}

function article(type: string): string {
  const name = type === 'int' ? 'integer' : type
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}
