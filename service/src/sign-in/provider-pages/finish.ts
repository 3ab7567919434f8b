import { finishSignInPage } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { type BrowserAccess, cookieName } from '#access/sessions/session-cookie.ts'
import { readCookie } from '#http/pages/cookies.ts'
import { html } from '#http/pages/html.ts'
import { sendHtml, servePage } from '#http/pages/serve-page.ts'
import { findEarlier, rememberSession, requireBrowser } from '#sign-in/browser-session.ts'
import { describeMapped } from '#sign-in/members/review-membership.ts'
import { useOnce } from '#sign-in/members/used-token-store.ts'
import { type Flow, flowMaxMs, openFlow } from '#sign-in/oidc/flow-cookie.ts'
import { redeemAnswer } from '#sign-in/oidc/redeem-answer.ts'
import { answerRefusal } from '#sign-in/pages/answer-refusal.ts'
import { layout } from '#sign-in/pages/layout.ts'
import { onwardPage } from '#sign-in/pages/onward-page.ts'
import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import { admitAccount, type Admitted } from './admit.ts'
import { flowCookie, setFlowCookie } from './begin.ts'
import { methodOf, type ProviderDeps, requireProvider } from './provider-deps.ts'

/**
 * Takes the provider's answer. It is redeemed at most once, by the browser that has started the sign-in, and the answer is a page
 * that goes on by itself: a redirect would still count as sent by the provider's site.
 */
export function serveFinishSignIn(app: FastifyInstance, deps: ProviderDeps) {
  servePage(app, finishSignInPage, async (request, reply) => {
    const browser = requireBrowser(deps)
    setFlowCookie(reply, browser, null)
    try {
      const provider = requireProvider(deps, request.params)
      const flow = await takeFlow(request, provider, browser, deps)
      const admitted = await signIn(request, { provider, flow, browser }, deps)
      if (admitted.kind === 'several') return sendHtml(reply, choicePage(admitted, provider, flow))
      request.line.organization_id = admitted.organizationId
      deps.metrics.signIns.inc({ result: 'signed_in' })
      rememberSession(reply, browser, admitted.started, deps.now())
      return sendHtml(reply, onwardPage('You are signed in', flow.returnTo))
    } catch (error) {
      const method = methodOf(deps, request.params)
      return answerRefusal(error, { request, reply, method }, deps)
    }
  })
}

/** The flow that this answer belongs to. Of two answers to one flow, in any process, only the first gets it. */
async function takeFlow(
  request: FastifyRequest,
  provider: SignInProvider,
  browser: BrowserAccess,
  { secretBox, now, db }: ProviderDeps,
): Promise<Flow> {
  const cookie = readCookie(request, cookieName(browser, flowCookie))
  const flow = cookie ? openFlow(cookie, secretBox, now()) : undefined
  if (!flow) throw new SignInRefused('flow_missing')
  if (flow.provider !== provider.id) throw new SignInRefused('wrong_provider')
  const { state } = request.query as { state?: unknown }
  if (state !== flow.state) throw new SignInRefused('wrong_state')
  const usableUntil = new Date(flow.startedAtMs + 2 * flowMaxMs)
  if (!(await useOnce(db, `state ${flow.state}`, usableUntil))) throw new SignInRefused('flow_used')
  return flow
}

type Answered = { provider: SignInProvider; flow: Flow; browser: BrowserAccess }

async function signIn(
  request: FastifyRequest,
  { provider, flow, browser }: Answered,
  deps: ProviderDeps,
): Promise<Admitted> {
  const answer = new URL(request.url, browser.publicUrl)
  const now = deps.now()
  const configuration = await deps.openProvider(provider)
  const account = await redeemAnswer(provider, configuration, { flow, answer, now })
  return admitAccount(
    {
      described: describeMapped(deps.settings(), provider, account.identity),
      account,
      wanted: flow.organizationId,
      invitation: flow.invitation,
      requestId: request.id,
      earlier: await findEarlier(request, deps),
    },
    deps,
  )
}

type Several = Extract<Admitted, { kind: 'several' }>

/** The provider knows the person already, so that a second round costs a click. */
function choicePage({ organizations }: Several, { id }: SignInProvider, { returnTo }: Flow) {
  const links = organizations.map(
    (organization) =>
      html`<li>
        <a
          class="button"
          href="/auth/${id}?organization=${organization.id}&return_to=${encodeURIComponent(returnTo)}"
          >${organization.name}</a
        >
      </li>`,
  )
  const body = html`<p>Your account belongs to several organizations. Choose one.</p>
    <ul class="choices">
      ${links}
    </ul>`
  return layout({ title: 'Choose an organization', body })
}
