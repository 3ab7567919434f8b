import { z } from 'zod'

import { type ErrorCode, type ErrorType, errorTypes } from './error.ts'

/** The families of error bodies (docs/specification/errors.md#families). Every route uses exactly one. */
export const dialects = ['admin', 'messages', 'count_tokens', 'responses', 'openai'] as const
export type Dialect = (typeof dialects)[number]

/** One violated rule of a schema, as count_tokens reports it. */
export type SchemaViolation = {
  loc: (string | number)[]
  msg: string
  type: string
  input: unknown
  ctx?: Record<string, unknown>
}

/**
 * What a model provider said when it rejected a request. Every dialect repeats it unchanged, because clients match on
 * the text: some shorten their conversation when they read that it is too long.
 */
export type ProviderRejection = {
  status: number
  message: string
  type: string | null
  code: string | null
  param: string | null
}

const FailingExample = z.object({
  index: z.int().min(0).describe('In the list of examples.'),
  expect: z.enum(['must_match', 'must_not_match']),
  score: z.int().min(0).max(10_000),
})
/** An example that does not come out as its policy's author expects. */
export type FailingExample = z.infer<typeof FailingExample>

/** The policy that refused a request or ended an answer, and why. */
export type DecidingPolicy = {
  policy_id: string
  /** Null for what no version has, such as a category that is always blocked. */
  version: number | null
  reason_code: string
  /** Whom to turn to, where the decision is to escalate. */
  escalation_path?: string
}

/** An error before it is rendered in a dialect. */
export type Failure = {
  code: ErrorCode
  type: ErrorType
  status: number
  message: string
  param: string | null
  requestId: string
  docUrl: string | null
  /** The policy that refused the request, if one did. */
  policy?: DecidingPolicy
  violations?: readonly SchemaViolation[]
  /** With the code `upstream_rejected`. */
  rejection?: ProviderRejection
  /** With the code `examples_failing`. */
  failing?: readonly FailingExample[]
  /** Further members that clients of the messages families read. */
  details?: Readonly<Record<string, unknown>>
}

const Policy = z.object({
  policy_id: z.string(),
  version: z.int().nullable(),
  reason_code: z.string(),
  escalation_path: z
    .string()
    .optional()
    .describe('Whom to turn to: an email address or an https URL.'),
})

const AdminErrorBody = z
  .object({
    error: z.object({
      code: z.string(),
      message: z.string().max(300),
      type: z.enum(errorTypes),
      param: z.string().nullable(),
      request_id: z.string(),
      doc_url: z.string().nullable(),
      failing: z
        .array(FailingExample)
        .max(20)
        .optional()
        .describe('Only with the code `examples_failing`.'),
    }),
  })
  .meta({ id: 'Error' })

const MessagesErrorBody = z
  .object({
    type: z.literal('error'),
    error: z.object({
      type: z.string(),
      message: z.string(),
      code: z.string().optional(),
      details: z.record(z.string(), z.unknown()).optional(),
    }),
    request_id: z.string(),
    policy: Policy.optional(),
  })
  .meta({ id: 'MessagesError' })

const CountTokensViolations = z
  .object({
    detail: z.array(
      z.object({
        loc: z.array(z.union([z.string(), z.int()])),
        msg: z.string(),
        type: z.string(),
        input: z.unknown(),
        ctx: z.record(z.string(), z.unknown()).optional(),
      }),
    ),
  })
  .meta({ id: 'CountTokensViolations' })

const OpenAiErrorBody = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
    policy: Policy.optional(),
  })
  .meta({ id: 'OpenAiError' })

const ResponsesErrorBody = z.object({ error: z.string(), code: z.string() }).meta({
  id: 'ResponsesError',
  description:
    "What callers get. OpenAI's official clients and the AI SDK, which find no code in this body, get `OpenAiError` instead; the operator can choose one of the two for all callers.",
})

/** The schema of each family's body, for tests and OpenAPI. */
export const errorBodies = {
  admin: AdminErrorBody,
  messages: MessagesErrorBody,
  count_tokens: z.union([CountTokensViolations, MessagesErrorBody]),
  responses: z.union([ResponsesErrorBody, OpenAiErrorBody]),
  openai: OpenAiErrorBody,
} as const satisfies Record<Dialect, z.ZodType>

/** The schema of a family's body with this status, where the status says more than the family. */
export function errorBodyAt(dialect: Dialect, status: number): z.ZodType {
  if (dialect === 'count_tokens') return status === 422 ? CountTokensViolations : MessagesErrorBody
  if (dialect === 'responses' && status === 429) return OpenAiErrorBody
  return errorBodies[dialect]
}

const typeInMessages = {
  auth_error: 'authentication_error',
  permission_error: 'permission_error',
  validation_error: 'invalid_request_error',
  rate_limit_error: 'rate_limit_error',
  billing_error: 'permission_error', // insufficient credits: 402 with this type
  moderation_error: 'invalid_request_error',
  policy_error: 'invalid_request_error',
  media_error: 'invalid_request_error',
  not_found_error: 'not_found_error',
  conflict_error: 'conflict_error',
  provider_error: 'api_error',
  internal_error: 'api_error',
} as const satisfies Record<ErrorType, string>

/** Statuses whose type in the messages dialect does not follow from the error's type. */
const messagesTypeByStatus: Record<number, string> = {
  413: 'request_too_large',
  504: 'timeout_error',
  529: 'overloaded_error',
}

function openAiType(status: number): string {
  if (status === 429) return 'rate_limit_error'
  if (status === 402) return 'insufficient_quota'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

const admin = (failure: Failure) => ({
  error: {
    code: failure.code,
    message: failure.message,
    type: failure.type,
    param: failure.param,
    request_id: failure.requestId,
    doc_url: failure.docUrl,
    ...(failure.failing && { failing: failure.failing }),
  },
})

/** Model callers get one code for all rate limits; only administration distinguishes the two. */
const codeForModelCallers = ({ code, rejection }: Failure) =>
  rejection?.code ?? (code === 'concurrency_limit_exceeded' ? 'rate_limit_exceeded' : code)

const messageOf = ({ message, rejection }: Failure) => rejection?.message ?? message

const messages = (failure: Failure) => ({
  type: 'error' as const,
  error: {
    type:
      failure.rejection?.type ??
      messagesTypeByStatus[failure.status] ??
      typeInMessages[failure.type],
    message: messageOf(failure),
    code: codeForModelCallers(failure),
    ...(failure.details && { details: failure.details }),
  },
  request_id: failure.requestId,
  ...(failure.policy && { policy: failure.policy }),
})

const countTokens = (failure: Failure) =>
  failure.violations ? { detail: failure.violations } : messages(failure)

const openAi = (failure: Failure) => ({
  error: {
    message: messageOf(failure),
    type: failure.rejection?.type ?? openAiType(failure.status),
    param: failure.rejection?.param ?? failure.param,
    code: codeForModelCallers(failure),
  },
  ...(failure.policy && { policy: failure.policy }),
})

/** A flat body for every status but 429, whose body clients expect as an object. */
const responses = (failure: Failure) =>
  failure.status === 429
    ? openAi(failure)
    : { error: messageOf(failure), code: failure.rejection?.code ?? failure.code }

/** Renders an error in each dialect. */
export const renderError = {
  admin,
  messages,
  count_tokens: countTokens,
  responses,
  openai: openAi,
} as const satisfies Record<Dialect, (failure: Failure) => unknown>

/** The status in a dialect: only the messages dialects have 529, the others use 503. */
export function statusIn(dialect: Dialect, status: number): number {
  return status === 529 && dialect !== 'messages' && dialect !== 'count_tokens' ? 503 : status
}
