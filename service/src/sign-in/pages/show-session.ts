import { showSession, signOut } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance } from 'fastify'

import { removeSessionCookie, requireOwnPage } from '#access/sessions/session-cookie.ts'
import { endSession } from '#access/sessions/start-session.ts'
import { html } from '#http/pages/html.ts'
import { readForm } from '#http/pages/read-form.ts'
import { sendHtml, sendOn, servePage } from '#http/pages/serve-page.ts'
import type { Principal } from '#http/principal.ts'
import { transact } from '#platform/transaction.ts'
import {
  findEarlier,
  findOrganizationName,
  findSignedIn,
  requireBrowser,
  requireOwnForm,
} from '#sign-in/browser-session.ts'
import type { SignInDeps } from '#sign-in/deps.ts'

import { layout } from './layout.ts'
import { onwardPage } from './onward-page.ts'

export function serveSessionPage(app: FastifyInstance, deps: SignInDeps) {
  servePage(app, showSession, async (request, reply) => {
    const caller = await findSignedIn(request, deps)
    if (!caller) return sendOn(reply, '/auth/sign_in')
    const organization = await findOrganizationName(caller.organizationId, deps)
    return sendHtml(reply, sessionPage(caller, organization))
  })
  servePage(app, signOut, async (request, reply) => {
    const browser = requireBrowser(deps)
    requireOwnForm(request, browser)
    // Of a suspended organization no session does anything; its browser forgets it.
    const caller = await findEarlier(request, deps)
    let wayOut: string | null = null
    if (caller) {
      const { 'x-gatehouse-csrf': header } = request.headers
      requireOwnPage(request, caller, browser, header ?? readForm(request).get('csrf'))
      const end = { requestId: request.id, now: deps.now(), action: 'signed_out' } as const
      await transact(deps.db, (tx) => endSession(tx, caller, end, deps))
      wayOut = await deps.findWayOut(caller, browser.publicUrl)
    }
    // Last: a session that could not be ended stays with its browser, which can try again.
    removeSessionCookie(reply, browser)
    return wayOut === null
      ? sendOn(reply, '/auth/sign_in')
      : sendHtml(reply, onwardPage('You are signed out', wayOut))
  })
}

function sessionPage(
  { member, organizationId, credentialId, session }: Principal,
  organization: string,
) {
  const who = member
    ? html`<dt>Member</dt>
        <dd>${member.name} (${member.email})</dd>
        <dt>Role</dt>
        <dd>${member.role}</dd>`
    : html`<dt>Administrator key</dt>
        <dd>${credentialId}</dd>`
  const body = html`<dl>
      ${who}
      <dt>Organization</dt>
      <dd>${organization} (${organizationId})</dd>
    </dl>
    <form method="post" action="/auth/sign_out">
      <input type="hidden" name="csrf" value="${session?.csrfToken ?? ''}" />
      <button class="second">Sign out</button>
    </form>`
  return layout({ title: 'You are signed in', body })
}
