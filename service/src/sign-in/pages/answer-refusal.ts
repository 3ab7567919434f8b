import type { FastifyReply, FastifyRequest } from 'fastify'

import { sendHtml } from '#http/pages/serve-page.ts'
import type { SignInDeps } from '#sign-in/deps.ts'
import { defaultReturnPath } from '#sign-in/return-path.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import { signInPage } from './show-sign-in.ts'

/** Where the problem is the operator's or the provider's, and not that of the person or of this browser. */
const isFault = ({ status }: SignInRefused) => status >= 500

type Asked = {
  request: FastifyRequest
  reply: FastifyReply
  /** How the person tried to sign in; never what a caller has made up. */
  method: string
}

/** The sign-in page, with why it did not work. Throws what is no refusal. */
export async function answerRefusal(
  error: unknown,
  { request, reply, method }: Asked,
  deps: SignInDeps,
) {
  if (!(error instanceof SignInRefused)) throw error
  const { reason, status, message, organizationId } = error
  request.line.code = reason
  deps.metrics.signIns.inc({ result: reason })
  if (isFault(error)) deps.log.problem(`sign_in_${reason}`, error, request.id)
  await deps.recordRefusal({
    ...(organizationId !== undefined && { organizationId }),
    method,
    reason,
    requestId: request.id,
  })
  return sendHtml(reply, signInPage(deps, defaultReturnPath, message), status)
}
