import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

import type { ErrorCode } from '@gatehouse/contract/error'

import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import { createId } from '#platform/id.ts'
import type { Log } from '#platform/log.ts'

import { errorText } from './error-dialect.ts'

const codes: Record<string, [ErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The request headers are larger than 16 KiB.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in time.'],
}

type Tools = { now: Clock; log: Log; docsUrl: string | undefined; isAnswering: boolean }

/** Answers bytes that never became a request: bad HTTP, oversized headers, a sender too slow. */
export function answerBrokenRequest(
  cause: Error & { code?: string },
  socket: Socket,
  { now, log, docsUrl, isAnswering }: Tools,
) {
  // While another request is being answered, or has been, this would be taken for its answer.
  const isTaken = isAnswering || socket.bytesWritten > 0
  if (cause.code === 'ECONNRESET' || !socket.writable || isTaken) {
    socket.destroy()
    return
  }
  const [code, message] = codes[cause.code ?? ''] ?? [
    'invalid_request',
    'The request is not valid HTTP/1.1.',
  ]
  const error = new ApiError(code, message, { cause })
  const requestId = createId('req', now())
  const body = errorText(error, requestId, { dialect: 'admin', docsUrl })
  socket.end(
    [
      `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      `request-id: ${requestId}`,
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  )
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
