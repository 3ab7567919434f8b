import type { FastifyReply, FastifyRequest } from 'fastify'

import { sendHtml } from '#http/pages/serve-page.ts'
import { signInPage } from '#sign-in/pages/show-sign-in.ts'
import { defaultReturnPath } from '#sign-in/return-path.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import type { ProviderDeps } from './provider-deps.ts'

/** Where the problem is the operator's or the provider's, and not that of the person or of this browser. */
const isFault = ({ status }: SignInRefused) => status >= 500

/** The sign-in page, with why it did not work. Throws what is no refusal. */
export async function answerRefusal(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: ProviderDeps,
) {
  if (!(error instanceof SignInRefused)) throw error
  const { reason, status, message, organizationId } = error
  const method = methodOf(request, deps)
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

/** A provider of the file; never what a caller has made up. */
function methodOf({ params }: FastifyRequest, { settings }: ProviderDeps): string {
  const { provider: id } = params as { provider?: string }
  return settings().providers.find((each) => each.id === id)?.id ?? 'unknown'
}
