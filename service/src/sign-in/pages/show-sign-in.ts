import { listProviders, showSignIn } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance } from 'fastify'

import { html } from '#http/pages/html.ts'
import { sendHtml, servePage } from '#http/pages/serve-page.ts'
import { requireBrowser } from '#sign-in/browser-session.ts'
import type { SignInDeps } from '#sign-in/deps.ts'
import { readReturnPath } from '#sign-in/return-path.ts'

import { layout, warning } from './layout.ts'

type Choices = Pick<SignInDeps, 'listProviders' | 'isWithKeys'>

/** All ways to sign in. `problem` says why the last attempt did not work. */
export function signInPage(
  { listProviders: list, isWithKeys }: Choices,
  returnPath: string,
  problem?: string,
) {
  const providers = list()
  // Links and no buttons, because form-action would refuse the redirect to the provider.
  const links = providers.map(
    ({ id, name }) =>
      html`<li>
        <a class="button" href="/auth/${id}?return_to=${encodeURIComponent(returnPath)}"
          >Sign in with ${name}</a
        >
      </li>`,
  )
  const keyForm = html`<form method="post" action="/auth/key">
    <label for="key">Administrator key</label>
    <input
      id="key"
      name="key"
      type="password"
      required
      maxlength="200"
      autocomplete="off"
      spellcheck="false"
      placeholder="gate_adm_…"
    />
    <input type="hidden" name="return_to" value="${returnPath}" />
    <button class="${links.length > 0 ? 'second' : ''}">Sign in with a key</button>
  </form>`
  const hasNone = links.length === 0 && !isWithKeys
  const body = html`${problem === undefined ? null : warning(problem)}
  ${
    links.length > 0
      ? html`<ul class="choices">
          ${links}
        </ul>`
      : null
  }
  ${isWithKeys ? keyForm : null}
  ${hasNone ? html`<p>The operator of this gateway has not set up a way to sign in.</p>` : null}`
  return layout({ title: 'Sign in', body })
}

export function serveSignInPage(app: FastifyInstance, deps: SignInDeps) {
  servePage(app, showSignIn, (request, reply) => {
    requireBrowser(deps)
    const { return_to: returnTo } = request.query as { return_to?: unknown }
    return sendHtml(reply, signInPage(deps, readReturnPath(returnTo)))
  })
  servePage(app, listProviders, (_, reply) => {
    requireBrowser(deps)
    const data = deps.listProviders().map(({ id, name }) => ({ id, name, url: `/auth/${id}` }))
    return reply.send({ object: 'list', data, keys: deps.isWithKeys })
  })
}
