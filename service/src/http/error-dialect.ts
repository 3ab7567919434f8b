import { type Dialect, renderError, statusIn } from '@gatehouse/contract/error-body'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import type { ApiError } from '#platform/api-error.ts'
import type { Log } from '#platform/log.ts'
import { toApiError } from '#platform/to-api-error.ts'

export type ErrorVoice = { log: Log; docsUrl: string | undefined }

/** Gives a scope of routes its family of error bodies. */
export function speakErrors(app: FastifyInstance, dialect: Dialect, voice: ErrorVoice) {
  app.setErrorHandler((thrown, request, reply) =>
    sendError(request, reply, { dialect, thrown, ...voice }),
  )
}

type Given = ErrorVoice & { dialect: Dialect; thrown: unknown }

/** Turns whatever was thrown into the family's body. What we did not expect goes to the log. */
export function sendError(request: FastifyRequest, reply: FastifyReply, given: Given) {
  const error = toApiError(given.thrown)
  // What we said ourselves, for a known reason, is on the request's own line.
  const isKnown = given.thrown === error && error.cause === undefined
  if (error.status >= 500 && !isKnown) given.log.problem(error.code, given.thrown, request.id)
  request.line.code = error.code
  // A connection that is closed while its client still sends megabytes gives that client no answer at all:
  // what it sends is read and thrown away instead, for as long as any request may take.
  if (error.code === 'request_too_large' && given.dialect !== 'admin') {
    void reply.removeHeader('connection')
  }
  const { verbatim } = error
  const isOwnDialect = verbatim?.dialect === given.dialect
  return reply
    .status(isOwnDialect ? verbatim.status : statusIn(given.dialect, error.status))
    .headers(error.headers)
    .type('application/json; charset=utf-8')
    .send(isOwnDialect ? verbatim.body : errorText(error, request.id, given))
}

/** The body as text, also for answers that never reach a route. */
export function errorText(
  error: ApiError,
  requestId: string,
  { dialect, docsUrl }: { dialect: Dialect; docsUrl: string | undefined },
): string {
  return JSON.stringify(
    renderError[dialect]({
      code: error.code,
      type: error.type,
      status: error.status,
      message: error.message,
      param: error.param,
      requestId,
      docUrl: docsUrl ? `${docsUrl.replace(/\/+$/, '')}/errors#${error.code}` : null,
      ...(error.violations && { violations: error.violations }),
      ...(error.details && { details: error.details }),
    }),
  )
}
