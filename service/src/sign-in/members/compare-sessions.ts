import type { Announce } from '#audit/announce.ts'
import { gatehouse } from '#audit/event.ts'
import type { TaskTurn } from '#platform/background/run-task.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { transact } from '#platform/transaction.ts'
import type { OpenProvider } from '#sign-in/oidc/open-provider.ts'
import { refreshAccount } from '#sign-in/oidc/refresh-account.ts'
import type { SignInProvider, SignInSettings } from '#sign-in/providers/read-sign-in.ts'

import { endProviderSessions } from './end-provider-sessions.ts'
import {
  claimDueSessions,
  noteComparison,
  type OpenProviderSession,
} from './provider-session-store.ts'
import { openToken, sealToken } from './provider-tokens.ts'
import { describeMapped, type ReviewDeps, reviewMembership } from './review-membership.ts'

const everyMs = 15 * 60_000
/** After a process has died with a session, or a provider has not answered. */
const againMs = 60_000
/** How many sessions are compared at the same time. */
export const comparedMax = 8

type Deps = {
  db: Db
  now: Clock
  log: Log
  announce: Announce
  secretBox: SecretBox
  settings: () => SignInSettings
  openProvider: OpenProvider
}

/**
 * Asks the providers about everybody who has signed in with them and who has a refresh token, every fifteen minutes: a role that
 * was taken away there ends here, although the person does not sign in again.
 */
export async function compareSessions(deps: Deps, { rest, signal }: TaskTurn) {
  for (;;) {
    const now = deps.now()
    const claim = {
      before: new Date(now.getTime() - everyMs),
      mark: new Date(now.getTime() - everyMs + againMs),
      now,
      limit: comparedMax,
    }
    const due = await transact(deps.db, (tx) => claimDueSessions(tx, claim))
    await Promise.all(due.map((session) => compareOrLog(session, deps)))
    if (due.length < comparedMax || signal.aborted) return
    await rest()
  }
}

/** A provider that does not answer ends nothing: the session has an end of its own. */
async function compareOrLog(session: OpenProviderSession, deps: Deps) {
  try {
    await compareSession(session, deps)
  } catch (error) {
    deps.log.problem('claims_not_compared', error)
  }
}

async function compareSession(session: OpenProviderSession, deps: Deps) {
  const settings = deps.settings()
  const provider = settings.providers.find(({ issuer }) => issuer === session.issuer)
  const answer = provider && (await ask(provider, session, deps))
  await transact(deps.db, async (tx) => {
    const now = deps.now()
    const review: ReviewDeps = { announce: deps.announce, now, by: gatehouse }
    if (!provider || !answer) return endProviderSessions(tx, [session], review)
    const { secretBox } = deps
    const refreshToken = sealToken(secretBox, 'refresh_token', session, answer.refreshToken)
    await noteComparison(tx, session, { refreshToken, at: now })
    if (!answer.identity) return undefined
    const described = describeMapped(settings, provider, answer.identity)
    const { organization_id: organizationId } = session
    const wanted = { organizationId, enters: false }
    const { refusal } = await reviewMembership(tx, wanted, described, review)
    return refusal === null ? undefined : endProviderSessions(tx, [session], review)
  })
}

/** Null: the provider has ended the sign-in, or it can no longer be asked. */
async function ask(provider: SignInProvider, session: OpenProviderSession, deps: Deps) {
  const refreshToken = openToken(deps.secretBox, 'refresh_token', session)
  if (refreshToken === null) return null
  const { subject } = session
  return refreshAccount(provider, await deps.openProvider(provider), { subject, refreshToken })
}
