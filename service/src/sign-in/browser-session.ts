import type { FastifyReply, FastifyRequest } from 'fastify'

import { findOrganization } from '#access/organizations/organization-store.ts'
import { hasKeyShape } from '#access/secret.ts'
import {
  type BrowserAccess,
  readSessionCookie,
  setSessionCookie,
} from '#access/sessions/session-cookie.ts'
import type { SessionOwner } from '#access/sessions/session-store.ts'
import { endSession, type StartedSession, startSession } from '#access/sessions/start-session.ts'
import { refuseCrossSite, isFromOwnPage } from '#http/pages/same-origin.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import { addressPrefix } from '#platform/client-address.ts'
import type { Tx } from '#platform/database.ts'

import type { SignInDeps } from './deps.ts'

const path = '/auth'

/** Throws unless the operator has set up sign-in. */
export function requireBrowser({ authentication: { browser } }: SignInDeps): BrowserAccess {
  if (browser) return browser
  throw new ApiError(
    'route_not_found',
    'There is no sign-in here, because the operator has not set PUBLIC_URL.',
  )
}

/** Throws unless a page of this gateway has sent the form. */
export function requireOwnForm({ headers }: FastifyRequest, { publicUrl }: BrowserAccess) {
  if (!isFromOwnPage(headers, publicUrl)) throw refuseCrossSite()
}

/** Who has signed in with this browser; null when its session has ended or there is none. */
export async function findSignedIn(
  request: FastifyRequest,
  deps: SignInDeps,
): Promise<Principal | null> {
  const text = readSessionCookie(request, requireBrowser(deps))
  if (!text?.startsWith('gate_ses_') || !hasKeyShape(text)) return null
  try {
    const { bySession } = deps.authentication
    return await bySession({ path }, { text, form: 'browser' }, addressPrefix(request.ip))
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null
    throw error
  }
}

/** The session that this browser had before a sign-in. One of a suspended organization does not stand in its way. */
export const findEarlier = (request: FastifyRequest, deps: SignInDeps): Promise<Principal | null> =>
  findSignedIn(request, deps).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 403) return null
    throw error
  })

/** As pages show it. */
export const findOrganizationName = async (id: string, { db }: Pick<SignInDeps, 'db'>) =>
  (await findOrganization(db, id))?.name ?? id

type SignIn = { owner: SessionOwner; method: string; requestId: string; now: Date }

/**
 * Starts the session of a person who has signed in with this browser, always with a new secret, and ends the one that the
 * browser had before, so that no planted or forgotten session stays. Undefined when its owner may not sign in.
 */
export async function replaceSession(
  tx: Tx,
  { owner, method, requestId, now }: SignIn,
  earlier: Principal | null,
  deps: SignInDeps,
): Promise<StartedSession | undefined> {
  const start = { owner, form: 'browser', method, requestId, now } as const
  const started = await startSession(tx, start, deps)
  if (started && earlier) await endSession(tx, earlier, { requestId, now, action: 'ended' }, deps)
  return started
}

export const rememberSession = (
  reply: FastifyReply,
  browser: BrowserAccess,
  { token, expiresAt }: StartedSession,
  now: Date,
) =>
  setSessionCookie(reply, browser, {
    token,
    maxAgeSeconds: Math.max(1, Math.floor((expiresAt.getTime() - now.getTime()) / 1000)),
  })
