import type { FastifyInstance } from 'fastify'

import { serveInvitations } from './accept-invitation.ts'
import { serveBackchannelLogout } from './backchannel-logout.ts'
import { serveBeginSignIn } from './begin.ts'
import { serveFinishSignIn } from './finish.ts'
import type { ProviderDeps } from './provider-deps.ts'

/** Sign-in with the providers of the operator's file. */
export function serveProviderPages(app: FastifyInstance, deps: ProviderDeps) {
  serveInvitations(app, deps)
  serveBeginSignIn(app, deps)
  serveFinishSignIn(app, deps)
  serveBackchannelLogout(app, deps)
}
