import type { FastifyInstance } from 'fastify'

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
  serveSessionPage(app, deps)
  serveProviderPages(app, deps)
}
