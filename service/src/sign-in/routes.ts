import type { FastifyInstance } from 'fastify'

import { serveConfirmDevice } from './device/confirm-device.ts'
import { servePollDevice } from './device/poll-device.ts'
import { serveRequestDevice } from './device/request-device.ts'
import { serveSignInWithLink } from './links/sign-in-with-link.ts'
import { setPageErrors } from './pages/page-errors.ts'
import { serveSessionPage } from './pages/show-session.ts'
import { serveSignInPage } from './pages/show-sign-in.ts'
import { serveSignInWithKey } from './pages/sign-in-with-key.ts'
import { serveStaticFiles } from './pages/static-files.ts'
import type { ProviderDeps } from './provider-pages/provider-deps.ts'
import { serveProviderPages } from './provider-pages/routes.ts'

/** The pages of sign-in. */
export function serveSignIn(app: FastifyInstance, deps: ProviderDeps) {
  setPageErrors(app, deps.log)
  serveStaticFiles(app)
  serveSignInPage(app, deps)
  serveSignInWithKey(app, deps)
  serveSignInWithLink(app, deps)
  serveConfirmDevice(app, deps)
  serveRequestDevice(app, deps)
  servePollDevice(app, deps)
  serveSessionPage(app, deps)
  serveProviderPages(app, deps)
}
