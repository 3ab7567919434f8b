import type { Endpoint } from '../endpoint.ts'

type Header = { description: string; schema: Record<string, unknown> }

const text = (description: string, ...values: string[]): Header => ({
  description,
  schema: { type: 'string', ...(values.length > 0 && { enum: values }) },
})
const count = (description: string, minimum = 0): Header => ({
  description,
  schema: { type: 'integer', minimum },
})

/** The three headers of a limit that inference answers report. */
const limitHeaders = (name: string, what: string): Record<string, Header> => ({
  [`x-ratelimit-limit-${name}`]: count(`${what}: the limit that would block first.`),
  [`x-ratelimit-remaining-${name}`]: count(`${what}: how many are left, this call included.`),
  [`x-ratelimit-reset-${name}`]: {
    description: `${what}: how long until this limit resets, such as \`6m0s\` or \`12ms\`.`,
    schema: { type: 'string', pattern: '^(\\d+h)?(\\d+m)?\\d+(\\.\\d{1,3})?s$|^\\d+ms$' },
  },
})

const limits = {
  requests: limitHeaders('requests', 'Requests'),
  tokens: limitHeaders('tokens', 'Tokens'),
  projectTokens: limitHeaders('project-tokens', "Tokens, if the project's limit blocks first"),
}

/** What the 429 of everything but inference says about the limit that was reached. */
const reached: Record<string, Header> = {
  'X-RateLimit-Limit': count('The limit that was reached.'),
  'X-RateLimit-Remaining': count('Always 0.'),
  'X-RateLimit-Reset': count('When to try again, in Unix seconds.'),
  'X-RateLimit-Scope': text('What was counted together.', 'credential', 'organization'),
  'X-RateLimit-Metric': text('What was counted.', 'requests', 'concurrent_requests'),
}

/** Every header of an answer that means something to callers (docs/specification/conventions.md#response-headers). */
const headers: Record<string, Header> = {
  'x-request-id': text('The id of this request. Quote it when you report a problem.'),
  'request-id': text("The same id, under the name that Anthropic's clients read."),
  'Cache-Control': text(
    'Streams: `no-cache`. Everything else: `no-store`.',
    'no-store',
    'no-cache',
  ),
  Vary: text(
    'Which headers of the request decide about the form of errors, unless the operator has chosen one for all callers.',
  ),
  'X-Accel-Buffering': text('On streams: tells proxies not to buffer.', 'no'),
  'Retry-After': count('How many seconds to wait at least. Add a small random delay.', 1),
  'WWW-Authenticate': text(
    'Which credential is needed, and what is wrong with the one that was sent; on a 403, the missing permission.',
  ),
  'x-should-retry': text('Repeating the request would not help.', 'false'),
  'Idempotent-Replayed': text('This is the stored answer to an earlier request.', 'true'),
  ETag: text(
    'In quotes, what was read or saved: its revision, to be sent back as `If-Match`, or of an operation that takes `If-None-Match` all that the answer says.',
  ),
  'x-policy-epoch': count(
    'Which state of the policies applied. It rises with every change of what is in force.',
  ),
  'x-policy-decision': text(
    'What the policies decided before the head was sent: `allow`, `refuse`, `escalate`, `rewrite` or `summary`. What follows a semicolon may be ignored, such as the part of a rollout in `allow; mode=canary`, or who was not asked about a count of tokens in `allow; unjudged=scorer,judge`.',
  ),
  'x-policy-holdback': text(
    'How many characters of the answer are held back at most until they are judged; `full`: all of them until its end; `none`: there is no answer to judge.',
  ),
  'x-gatehouse-error': text("The error is the model provider's own.", 'upstream_rejected'),
  'x-upstream-request-id': text("The model provider's id of the request."),
  'x-gatehouse-removed': text('The members of the request that the model provider did not get.'),
  ...limits.requests,
  ...limits.tokens,
  ...limits.projectTokens,
  ...reached,
}

/** Whether an answer always has a header, or only in some cases. */
type Presence = 'always' | 'sometimes'
type Presences = Record<string, Presence>

const each = (names: Record<string, Header>, presence: Presence): Presences =>
  Object.fromEntries(Object.keys(names).map((name) => [name, presence]))

/** The headers as answers have them that always have them. */
export const headerComponents = Object.fromEntries(
  Object.entries(headers).map(([name, header]) => [name, { ...header, required: true }]),
)

/**
 * The headers of an operation's answers with this status. Those that may be missing are written out: generators do not
 * look behind a reference, and take what it refers to for required.
 */
export function headersOf(endpoint: Endpoint, status: number) {
  const present: Presences = {
    'x-request-id': 'always',
    'request-id': 'always',
    'Cache-Control': 'always',
    ...retryHeaders(endpoint, status),
    ...(status === 401 && { 'WWW-Authenticate': 'always' }),
    ...(status === 403 && { 'WWW-Authenticate': 'sometimes' }),
    ...(endpoint.isIdempotent &&
      isStored(endpoint, status) && { 'Idempotent-Replayed': 'sometimes' }),
    ...(endpoint.etag && status === endpoint.successStatus && { ETag: 'always' }),
    ...(endpoint.isConditional &&
      [endpoint.successStatus, 304].includes(status as 200) && { ETag: 'always' }),
    ...(isInference(endpoint) && inferenceHeaders(endpoint, status)),
    // Before the path is known, errors have the body of the administration.
    ...(endpoint.dialect === 'responses' && status !== 431 && { Vary: 'sometimes' as const }),
  }
  return Object.fromEntries(
    Object.entries(present).map(([name, presence]) => [
      name,
      presence === 'always' ? { $ref: `#/components/headers/${name}` } : headers[name],
    ]),
  )
}

function retryHeaders(endpoint: Endpoint, status: number): Presences {
  if (status === 409) return { 'Retry-After': 'sometimes', 'x-should-retry': 'sometimes' }
  if (status === 503 || status === 529) return { 'Retry-After': 'always' }
  if (status !== 429) return {}
  // An inference call is also refused like this when its address has tried too many unknown keys.
  return {
    'Retry-After': 'always',
    ...each(reached, isInference(endpoint) ? 'sometimes' : 'always'),
  }
}

/** What an Idempotency-Key keeps: successes, and refusals that depend on what exists. */
const isStored = ({ successStatus }: Endpoint, status: number) =>
  [successStatus, 404, 409].includes(status)

/** The endpoints that count against the limits of inference. */
const isInference = ({ permission }: Endpoint) => permission === 'model.invoke'

export const isStreamable = ({ body }: Endpoint) =>
  body !== undefined && 'shape' in body && 'stream' in Object(body.shape)

/** Answered only to calls that the limiter has admitted. */
const admittedOnly: readonly number[] = [402, 502, 504]
/** What a model provider's own refusal keeps. */
const rejected: readonly number[] = [400, 413, 422]
const rejectedHeaders: Presences = {
  'x-gatehouse-error': 'sometimes',
  'x-upstream-request-id': 'sometimes',
}
/** Answered before the credential is known. */
const unread: readonly number[] = [414, 431]

function inferenceHeaders(endpoint: Endpoint, status: number): Presences {
  const isSuccess = status === endpoint.successStatus
  const canBeCounted = status !== 401 || endpoint.takesFreeRequests
  if (unread.includes(status) || !canBeCounted) return {}
  const presence = isSuccess || admittedOnly.includes(status) ? 'always' : 'sometimes'
  return {
    ...each(limits.requests, presence),
    ...each(limits.tokens, presence),
    ...each(limits.projectTokens, 'sometimes'),
    ...(endpoint.body && {
      'x-policy-epoch': presence,
      'x-policy-decision': presence,
      'x-policy-holdback': 'sometimes',
    }),
    ...(isStreamable(endpoint) && { 'x-gatehouse-removed': 'sometimes' }),
    ...(isStreamable(endpoint) && rejected.includes(status) && rejectedHeaders),
    ...(isStreamable(endpoint) && isSuccess && { 'X-Accel-Buffering': 'sometimes' }),
  }
}
