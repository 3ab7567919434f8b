import type { FastifyReply, FastifyRequest } from 'fastify'

import { toApiError } from '#platform/to-api-error.ts'
import type { SignInDeps } from '#sign-in/deps.ts'

/** Why a program does not get what it asked for: a code of OAuth, and what to do. */
export class DeviceError extends Error {
  readonly code: string
  readonly status: 400 | 429
  constructor(code: string, message: string, status: 400 | 429 = 400) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** Answers a program with JSON, also when it did not work (RFC 6749, 5.2). */
export async function answerProgram(
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  work: () => Promise<object>,
  { log }: Pick<SignInDeps, 'log'>,
) {
  try {
    return await reply.send(await work())
  } catch (thrown) {
    if (thrown instanceof DeviceError) {
      const { code, status, message } = thrown
      request.line.code = code
      if (status === 429) void reply.header('retry-after', '60')
      return reply.status(status).send({ error: code, error_description: message })
    }
    const error = toApiError(thrown)
    if (error.status >= 500 && thrown !== error) log.problem(error.code, thrown, request.id)
    request.line.code = error.code
    const code = error.status >= 500 ? 'temporarily_unavailable' : 'invalid_request'
    const body = { error: code, error_description: error.message }
    return reply.status(error.status).headers(error.headers).send(body)
  }
}
