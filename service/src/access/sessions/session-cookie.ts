import { timingSafeEqual } from 'node:crypto'

import type { FastifyReply, FastifyRequest } from 'fastify'

import { readCookie, setCookie } from '#http/pages/cookies.ts'
import { isFromOwnPage, refuseCrossSite } from '#http/pages/same-origin.ts'
import type { Principal } from '#http/principal.ts'

/** How browsers reach this gateway, which decides the form of their cookies. */
export type BrowserAccess = {
  /** An origin, as in PUBLIC_URL. */
  readonly publicUrl: string
  readonly isSecure: boolean
}

/** Only https has cookies that belong to one host; without it PUBLIC_URL must be a loopback address. */
export const browserAccess = (publicUrl: string): BrowserAccess => ({
  publicUrl,
  isSecure: publicUrl.startsWith('https:'),
})

/** The name of a cookie of this gateway: with the prefix no other host, not even a sibling, can set it. */
export const cookieName = ({ isSecure }: BrowserAccess, name: string) =>
  isSecure ? `__Host-${name}` : name

const sessionName = 'gatehouse'

/** The secret in the session's cookie; null when it cannot be one. */
export const readSessionCookie = (request: FastifyRequest, browser: BrowserAccess) =>
  readCookie(request, cookieName(browser, sessionName))

export function setSessionCookie(
  reply: FastifyReply,
  browser: BrowserAccess,
  { token, maxAgeSeconds }: { token: string; maxAgeSeconds: number },
) {
  const name = cookieName(browser, sessionName)
  return setCookie(reply, { name, value: token, maxAgeSeconds, isSecure: browser.isSecure })
}

/** Makes the browser forget its session, which must have been ended. */
export const removeSessionCookie = (reply: FastifyReply, browser: BrowserAccess) =>
  setSessionCookie(reply, browser, { token: '', maxAgeSeconds: 0 })

/** Throws a 403 unless a change that came with a cookie was sent by a page of ours, which alone knows the token. */
export function requireOwnPage(
  { method, headers }: FastifyRequest,
  { session }: Principal,
  { publicUrl }: BrowserAccess,
  sent: unknown = headers['x-gatehouse-csrf'],
) {
  if (method === 'GET' || method === 'HEAD') return
  const expected = session?.csrfToken ?? null
  const hasToken = expected !== null && typeof sent === 'string' && isSame(sent, expected)
  if (!hasToken || !isFromOwnPage(headers, publicUrl)) throw refuseCrossSite()
}

function isSame(sent: string, expected: string): boolean {
  const [one, other] = [Buffer.from(sent), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}
