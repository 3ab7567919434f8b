import { showLink, signInWithLink } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance } from 'fastify'

import type { FoundLink } from '#access/member-links/link-store.ts'
import { html } from '#http/pages/html.ts'
import { readForm } from '#http/pages/read-form.ts'
import { sendHtml, sendOn, servePage } from '#http/pages/serve-page.ts'
import { ApiError } from '#platform/api-error.ts'
import {
  findEarlier,
  rememberSession,
  requireBrowser,
  requireOwnForm,
} from '#sign-in/browser-session.ts'
import type { SignInDeps } from '#sign-in/deps.ts'
import { findMemberLink } from '#sign-in/find-member-link.ts'
import { addressForm } from '#sign-in/pages/address-form.ts'
import { answerRefusal } from '#sign-in/pages/answer-refusal.ts'
import { layout } from '#sign-in/pages/layout.ts'
import { defaultReturnPath } from '#sign-in/return-path.ts'

import { useLink } from './use-link.ts'

const { path } = signInWithLink

/**
 * Signs a member in with a link that the operator has made. Opening it only shows whom it is for, so that programs that look at
 * links in messages do not use it up.
 */
export function serveSignInWithLink(app: FastifyInstance, deps: SignInDeps) {
  servePage(app, showLink, (_, reply) => {
    requireLinks(deps)
    const label = 'What stands behind the # of the link'
    return sendHtml(reply, addressForm({ title: 'Sign in with a link', action: path, label }))
  })
  servePage(app, signInWithLink, async (request, reply) => {
    const browser = requireLinks(deps)
    requireOwnForm(request, browser)
    const form = readForm(request)
    const token = form.get('token') ?? ''
    try {
      const { name, link } = await findMemberLink('sign_in', token, request, deps)
      if (form.get('confirmed') !== 'yes') return sendHtml(reply, confirmPage(link, token))
      const earlier = await findEarlier(request, deps)
      const started = await useLink({ name, link, requestId: request.id, earlier }, deps)
      request.line.organization_id = link.organization_id
      deps.metrics.signIns.inc({ result: 'signed_in' })
      rememberSession(reply, browser, started, deps.now())
      return await sendOn(reply, defaultReturnPath)
    } catch (error) {
      return answerRefusal(error, { request, reply, method: 'link' }, deps)
    }
  })
}

function requireLinks(deps: SignInDeps) {
  const browser = requireBrowser(deps)
  if (deps.isWithKeys) return browser
  throw new ApiError('route_not_found', 'Links do not sign in here; use another way to sign in.')
}

/** Shown before anything happens: a link could also be that of another person, sent to have this browser act for that person. */
const confirmPage = ({ name, email, organization_name: organization }: FoundLink, token: string) =>
  layout({
    title: 'Sign in with a link',
    body: html`<dl>
        <dt>Member</dt>
        <dd>${name} (${email})</dd>
        <dt>Organization</dt>
        <dd>${organization}</dd>
      </dl>
      <form method="post" action="${path}">
        <input type="hidden" name="token" value="${token}" />
        <input type="hidden" name="confirmed" value="yes" />
        <button>Sign in as ${name}</button>
      </form>
      <p class="faint">The link works once. If this is not you, close this page.</p>`,
  })
