import { backchannelLogout } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance } from 'fastify'

import { gatehouse } from '#audit/event.ts'
import { readForm } from '#http/pages/read-form.ts'
import { servePage } from '#http/pages/serve-page.ts'
import { transact } from '#platform/transaction.ts'
import { endProviderSessions } from '#sign-in/members/end-provider-sessions.ts'
import { listOpenSessions } from '#sign-in/members/provider-session-store.ts'
import { useOnce } from '#sign-in/members/used-token-store.ts'
import {
  type Logout,
  logoutTokenMaxSeconds,
  verifyLogoutToken,
} from '#sign-in/oidc/verify-logout-token.ts'
import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import { type ProviderDeps, requireProvider } from './provider-deps.ts'

/** A member has at most 20 sessions in each organization. */
const sessionsMax = 2000

/** A provider says that it has ended its session, or all sessions of an account: ours end too, everywhere within five seconds. */
export function serveBackchannelLogout(app: FastifyInstance, deps: ProviderDeps) {
  servePage(app, backchannelLogout, async (request, reply) => {
    void reply.header('cache-control', 'no-store')
    try {
      const provider = requireProvider(deps, request.params)
      const logout = await verify(readForm(request).get('logout_token') ?? '', provider, deps)
      const isDone = logout && (await end(provider, logout, request.id, deps))
      if (isDone) return await reply.status(200).send()
      return await reply.status(400).send({ error: 'invalid_request', error_description: problem })
    } catch (error) {
      if (!(error instanceof SignInRefused)) throw error
      const { status, message } = error
      return reply.status(status).send({ error: 'server_error', error_description: message })
    }
  })
}

const problem =
  'The logout token is not from this provider for this client, is older than 5 minutes, or was used before.'

async function verify(
  token: string,
  provider: SignInProvider,
  { openProvider, keysAt, now }: ProviderDeps,
): Promise<Logout | undefined> {
  const configuration = await openProvider(provider)
  const { issuer, jwks_uri: jwksUrl } = configuration.serverMetadata()
  if (jwksUrl === undefined) return undefined
  const expected = { issuer, clientId: provider.clientId, keys: keysAt(jwksUrl), now: now() }
  try {
    return await verifyLogoutToken(token, expected)
  } catch (error) {
    throw new SignInRefused('provider_unavailable', { cause: error })
  }
}

/** Together with the use of the token: if this process dies, the provider may send it again. False: it was used before. */
async function end(
  { issuer }: SignInProvider,
  { jti, subject, providerSession }: Logout,
  requestId: string,
  { db, announce, ...deps }: ProviderDeps,
): Promise<boolean> {
  const now = deps.now()
  const usableUntil = new Date(now.getTime() + 2 * logoutTokenMaxSeconds * 1000)
  return transact(db, async (tx) => {
    if (!(await useOnce(tx, `logout ${issuer} ${jti}`, usableUntil))) return false
    const open = await listOpenSessions(tx, { issuer, subject, providerSession }, sessionsMax)
    const by = { ...gatehouse, requestId }
    await endProviderSessions(tx, open, { announce, now, by })
    return true
  })
}
