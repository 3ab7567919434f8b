import { beginSignInPage } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyReply } from 'fastify'

import { type BrowserAccess, cookieName } from '#access/sessions/session-cookie.ts'
import { setCookie } from '#http/pages/cookies.ts'
import { servePage } from '#http/pages/serve-page.ts'
import { requireBrowser } from '#sign-in/browser-session.ts'
import { beginSignIn } from '#sign-in/oidc/begin-sign-in.ts'
import { flowMaxMs, sealFlow } from '#sign-in/oidc/flow-cookie.ts'
import { answerRefusal } from '#sign-in/pages/answer-refusal.ts'
import { defaultReturnPath, readReturnPath } from '#sign-in/return-path.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import { methodOf, type ProviderDeps, redirectUriOf, requireProvider } from './provider-deps.ts'

export const flowCookie = 'gatehouse-sign-in'

/** Sends the browser to the provider. A link, not a form, because the content policy refuses forms that lead elsewhere. */
export function serveBeginSignIn(app: FastifyInstance, deps: ProviderDeps) {
  servePage(app, beginSignInPage, async (request, reply) => {
    const browser = requireBrowser(deps)
    try {
      const provider = requireProvider(deps, request.params)
      const { url, flow } = await beginSignIn(provider, await deps.openProvider(provider), {
        ...readQuery(request.query),
        redirectUri: redirectUriOf(browser.publicUrl, provider),
        now: deps.now(),
      })
      setFlowCookie(reply, browser, sealFlow(flow, deps.secretBox))
      return await reply.status(303).header('location', url.href).send()
    } catch (error) {
      const method = methodOf(deps, request.params)
      return answerRefusal(error, { request, reply, method }, deps)
    }
  })
}

/** Only this browser can complete what it has started. The cookie comes back with the link that the provider sends it on. */
export function setFlowCookie(reply: FastifyReply, browser: BrowserAccess, value: string | null) {
  return setCookie(reply, {
    name: cookieName(browser, flowCookie),
    value: value ?? '',
    maxAgeSeconds: value === null ? 0 : flowMaxMs / 1000,
    isSecure: browser.isSecure,
  })
}

function readQuery(query: unknown) {
  const { return_to: wanted, organization } = query as Record<string, unknown>
  const returnTo = readReturnPath(wanted ?? defaultReturnPath)
  // A link that is meant to end elsewhere is refused before anything is asked of the person.
  if (wanted !== undefined && returnTo !== wanted) throw new SignInRefused('bad_return_path')
  const organizationId =
    typeof organization === 'string' && /^org_[0-9a-z]{1,60}$/.test(organization)
      ? organization
      : null
  return { returnTo, organizationId, invitation: null }
}
