import { signInWithKey } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { hasKeyShape } from '#access/secret.ts'
import { unauthorized } from '#access/unauthorized.ts'
import { readForm } from '#http/pages/read-form.ts'
import { sendHtml, sendOn, servePage } from '#http/pages/serve-page.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import { addressPrefix } from '#platform/client-address.ts'
import { transact } from '#platform/transaction.ts'
import {
  findEarlier,
  rememberSession,
  replaceSession,
  requireBrowser,
  requireOwnForm,
} from '#sign-in/browser-session.ts'
import type { SignInDeps } from '#sign-in/deps.ts'
import { readReturnPath } from '#sign-in/return-path.ts'

import { signInPage } from './show-sign-in.ts'

const { path } = signInWithKey

/** Signs in a person who has an administrator key. The session has its permissions and ends with it. */
export function serveSignInWithKey(app: FastifyInstance, deps: SignInDeps) {
  servePage(app, signInWithKey, async (request, reply) => {
    const browser = requireBrowser(deps)
    if (!deps.isWithKeys) throw withoutKeys()
    requireOwnForm(request, browser)
    const form = readForm(request)
    const returnPath = readReturnPath(form.get('return_to'))
    try {
      const key = await authenticate(form.get('key')?.trim() ?? '', request, deps)
      await start(key, request, reply, deps)
      return await sendOn(reply, returnPath)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status < 401 || error.status > 429) throw error
      await deps.recordRefusal({ method: 'key', reason: error.code, requestId: request.id })
      request.line.code = error.code
      return sendHtml(reply, signInPage(deps, returnPath, error.message), error.status)
    }
  })
}

/** With the limits on guesses that keys have everywhere. */
async function authenticate(text: string, request: FastifyRequest, deps: SignInDeps) {
  if (!text.startsWith('gate_adm_') || !hasKeyShape(text)) {
    const message = 'This is no administrator key, or it is incomplete; copy it again.'
    throw unauthorized({ path }, 'invalid_api_key', message)
  }
  const credential = { kind: 'admin_key', text } as const
  return deps.authentication.byKey({ path }, credential, addressPrefix(request.ip))
}

async function start(
  { organizationId, credentialId }: Principal,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: SignInDeps,
) {
  const now = deps.now()
  const earlier = await findEarlier(request, deps)
  const owner = { organizationId, keyId: credentialId }
  const signIn = { owner, method: 'key', requestId: request.id, now }
  const started = await transact(deps.db, (tx) => replaceSession(tx, signIn, earlier, deps))
  if (!started)
    throw unauthorized({ path }, 'revoked_api_key', 'The key was revoked; use another one.')
  request.line.organization_id = organizationId
  rememberSession(reply, requireBrowser(deps), started, now)
}

const withoutKeys = () =>
  new ApiError('route_not_found', 'Keys do not sign in here; use another way to sign in.')
