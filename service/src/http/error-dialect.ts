import { type Dialect, renderError, statusIn } from '@gatehouse/contract/error-body'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { type ApiError, failureOf } from '#platform/api-error.ts'
import type { Log } from '#platform/log.ts'
import { toApiError } from '#platform/to-api-error.ts'

export type ErrorDeps = {
  log: Log
  docsUrl: string | undefined
  /** The error bodies of /v1/responses (docs/specification/errors.md#responses-body). */
  responsesErrors: ResponsesErrors
  /** Told of every error that is answered. */
  noteRefusal?: NoteRefusal
}
export type NoteRefusal = (request: FastifyRequest, error: ApiError) => void
export type ResponsesErrors = 'auto' | 'flat' | 'openai'

/**
 * Whether the caller of /v1/responses gets errors as OpenAI's object. With `auto` this depends on the client, and the answer
 * says so in `Vary`: the official clients find no code in a flat body, and the AI SDK finds no message.
 */
export function hasErrorObject(
  setting: ResponsesErrors,
  { headers }: FastifyRequest,
  reply: FastifyReply,
): boolean {
  if (setting !== 'auto') return setting === 'openai'
  void reply.header('vary', 'x-stainless-lang, user-agent')
  return headers['x-stainless-lang'] !== undefined || aiSdk.test(headers['user-agent'] ?? '')
}

/** How releases of the AI SDK name themselves: `ai/7.0.1 …`, `ai-sdk/openai/2.0.1 …`, `ai-sdk-openai/4.0.1 …`. */
const aiSdk = /^ai\/|ai-sdk\/|(?:^|\s)ai-sdk-/

/** Sets the family of error bodies for the routes of a scope. */
export function setErrorDialect(app: FastifyInstance, dialect: Dialect, deps: ErrorDeps) {
  app.setErrorHandler((thrown, request, reply) =>
    sendError(request, reply, { dialect, thrown, ...deps }),
  )
}

type Failure = ErrorDeps & { dialect: Dialect; thrown: unknown }

/** Answers with whatever was thrown, in the body of the dialect. Unexpected errors are logged. */
export function sendError(request: FastifyRequest, reply: FastifyReply, failure: Failure) {
  const { dialect, thrown, log, responsesErrors, noteRefusal } = failure
  const error = toApiError(thrown)
  // An ApiError without a cause was thrown on purpose: the request's own log line is enough.
  const isExpected = thrown === error && error.cause === undefined
  if (error.status >= 500 && !isExpected) log.problem(error.code, thrown, request.id)
  request.line.code = error.code
  noteRefusal?.(request, error)
  // A client that is still sending when its connection is closed never sees the answer. Without the header, which Fastify
  // sets when a body is refused, the connection stays open and the rest of the body is read and discarded.
  const isSending = !request.raw.complete && error.code !== 'request_timeout'
  if (isSending && dialect !== 'admin') void reply.removeHeader('connection')
  const hasObject = dialect === 'responses' && hasErrorObject(responsesErrors, request, reply)
  const body = { ...failure, dialect: hasObject ? ('openai' as const) : dialect }
  return reply
    .status(statusIn(dialect, error.status))
    .headers(error.headers)
    .type('application/json; charset=utf-8')
    .send(errorText(error, request.id, body))
}

/** The body as text; also used for answers that never reach a route. */
export function errorText(
  error: ApiError,
  requestId: string,
  { dialect, docsUrl }: { dialect: Dialect; docsUrl: string | undefined },
): string {
  return JSON.stringify(
    renderError[dialect]({
      ...failureOf(error, requestId),
      docUrl: docsUrl ? `${docsUrl.replace(/\/+$/, '')}/errors#${error.code}` : null,
      ...(error.violations && { violations: error.violations }),
      ...(error.failing && { failing: error.failing }),
      ...(error.rejection && { rejection: error.rejection }),
    }),
  )
}
