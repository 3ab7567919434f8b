import { acceptInvitation, showInvitation } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyReply } from 'fastify'

import type { FoundLink } from '#access/member-links/link-store.ts'
import type { BrowserAccess } from '#access/sessions/session-cookie.ts'
import { html } from '#http/pages/html.ts'
import { readForm } from '#http/pages/read-form.ts'
import { sendHtml, servePage } from '#http/pages/serve-page.ts'
import { requireBrowser, requireOwnForm } from '#sign-in/browser-session.ts'
import { findMemberLink, unusableLink } from '#sign-in/find-member-link.ts'
import { beginSignIn } from '#sign-in/oidc/begin-sign-in.ts'
import { sealFlow } from '#sign-in/oidc/flow-cookie.ts'
import { addressForm } from '#sign-in/pages/address-form.ts'
import { answerRefusal } from '#sign-in/pages/answer-refusal.ts'
import { layout } from '#sign-in/pages/layout.ts'
import { onwardPage } from '#sign-in/pages/onward-page.ts'
import { vouchesFor } from '#sign-in/providers/map-identity.ts'
import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'
import { defaultReturnPath } from '#sign-in/return-path.ts'

import { setFlowCookie } from './begin.ts'
import { type ProviderDeps, redirectUriOf, requireProvider } from './provider-deps.ts'

const { path } = acceptInvitation

/** Leads an invited person to a provider. What the provider says decides: the link alone makes no session and changes nothing. */
export function serveInvitations(app: FastifyInstance, deps: ProviderDeps) {
  servePage(app, showInvitation, (_, reply) => {
    requireBrowser(deps)
    const label = 'What stands behind the # of the invitation'
    return sendHtml(reply, addressForm({ title: 'Your invitation', action: path, label }))
  })
  servePage(app, acceptInvitation, async (request, reply) => {
    const browser = requireBrowser(deps)
    requireOwnForm(request, browser)
    const form = readForm(request)
    const token = form.get('token') ?? ''
    const provider = form.get('provider')
    try {
      const { link } = await findMemberLink('invitation', token, request, deps)
      if (link.status !== 'invited') throw unusableLink('invitation')
      if (provider === undefined) return sendHtml(reply, invitationPage(link, token, deps))
      const chosen = requireProvider(deps, { provider })
      return await goToProvider(reply, { link, provider: chosen, browser }, deps)
    } catch (error) {
      return answerRefusal(error, { request, reply, method: 'invitation' }, deps)
    }
  })
}

type Invited = { link: FoundLink; provider: SignInProvider; browser: BrowserAccess }

async function goToProvider(
  reply: FastifyReply,
  { link, provider, browser }: Invited,
  deps: ProviderDeps,
) {
  const { url, flow } = await beginSignIn(provider, await deps.openProvider(provider), {
    returnTo: defaultReturnPath,
    organizationId: link.organization_id,
    invitation: link.secret_hash.toString('base64'),
    redirectUri: redirectUriOf(browser.publicUrl, provider),
    now: deps.now(),
  })
  setFlowCookie(reply, browser, sealFlow(flow, deps.secretBox))
  return sendHtml(reply, onwardPage(`Sign in with ${provider.name}`, url.href))
}

function invitationPage(
  { organization_id, organization_name: organization, email }: FoundLink,
  token: string,
  { settings }: ProviderDeps,
) {
  const believed = settings().providers.filter((each) =>
    vouchesFor(settings(), each, organization_id),
  )
  const forms = believed.map(
    ({ id, name }) =>
      html`<form method="post" action="${path}">
        <input type="hidden" name="token" value="${token}" />
        <input type="hidden" name="provider" value="${id}" />
        <button>Sign in with ${name}</button>
      </form>`,
  )
  const none = html`<p>
    The operator of this gateway has set up no provider. Ask the operator for a link that signs you
    in.
  </p>`
  return layout({
    title: 'Your invitation',
    body: html`<p>You are invited to <b>${organization}</b>.</p>
      <p>Sign in with the account that has the address <b>${email}</b>.</p>
      ${forms.length > 0 ? forms : none}`,
  })
}
