import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

import type { ErrorCode } from '@gatehouse/contract/error'
import type { FastifyReply, FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import { createId } from '#platform/id.ts'
import type { Log } from '#platform/log.ts'

import { errorText } from './error-dialect.ts'

const codes: Record<string, [ErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: [
    'headers_too_large',
    'The request headers are larger than 16 KiB; send fewer.',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    'request_timeout',
    'The request did not arrive completely in time; send it again.',
  ],
}

/** A request on a socket whose answer is not finished. */
export type OpenRequest = {
  request: FastifyRequest
  reply: FastifyReply
  /** Whether a timer already limits how long the client may take to read the answer. */
  isTimed: boolean
}

type BrokenRequestDeps = {
  now: Clock
  log: Log
  docsUrl: string | undefined
  open: readonly OpenRequest[]
}

/** Answers bytes that never became a request: malformed HTTP, oversized headers, or a sender that is too slow. */
export function answerBrokenRequest(
  cause: Error & { code?: string },
  socket: Socket,
  { now, log, docsUrl, open }: BrokenRequestDeps,
) {
  const [broken] = open
  if (cause.code === 'ECONNRESET' || !socket.writable || isAmbiguous(open, socket)) {
    socket.destroy()
    return
  }
  const [code, message] = codes[cause.code ?? ''] ?? [
    'invalid_request',
    'The request is not valid HTTP/1.1.',
  ]
  const error = new ApiError(code, message, { cause })
  const requestId = broken?.request.id ?? createId('req', now())
  const body = errorText(error, requestId, { dialect: 'admin', docsUrl })
  socket.end(
    [
      `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      `request-id: ${requestId}`,
      'cache-control: no-store',
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  )
  if (broken) {
    // Its log line is written when the reply closes.
    broken.reply.raw.statusCode = error.status
    broken.request.line.code = code
    return
  }
  log.request({
    request_id: requestId,
    method: 'unknown',
    route: 'unknown',
    status: error.status,
    duration_ms: 0,
    outcome: 'answered',
    code,
  })
}

/** Whether the client could take our answer for the answer to an earlier, complete request on this connection. */
function isAmbiguous(open: readonly OpenRequest[], socket: Socket): boolean {
  const [first, ...others] = open
  if (!first) return socket.bytesWritten > 0
  return others.length > 0 || first.request.raw.complete || first.reply.raw.headersSent
}
