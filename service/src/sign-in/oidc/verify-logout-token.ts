import { errors, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'

import { clockToleranceSeconds } from './open-provider.ts'

/** Symmetric algorithms and `none` are not among them. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'
/** Older ones are refused, so that only their ids have to be remembered. */
export const logoutTokenMaxSeconds = 300

const LogoutClaims = z.object({
  iat: z.number(),
  jti: z.string().min(1).max(500),
  sub: z.string().min(1).max(255).optional(),
  sid: z.string().min(1).max(255).optional(),
  events: z.looseObject({ [logoutEvent]: z.looseObject({}) }),
  /** An ID token may have a nonce, a logout token must not: so an ID token is never accepted as a logout token. */
  nonce: z.undefined().optional(),
})

type Expected = { issuer: string; clientId: string; keys: JWTVerifyGetKey; now: Date }

/** Which sessions a provider has ended: all of an account, or those of one session at the provider. */
export type Logout = { jti: string; subject: string | null; providerSession: string | null }

/** Undefined for a token that is not the provider's, not for us, not about a logout, or too old. Throws if the keys cannot be had. */
export async function verifyLogoutToken(
  token: string,
  { issuer, clientId, keys, now }: Expected,
): Promise<Logout | undefined> {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      issuer,
      audience: clientId,
      algorithms,
      currentDate: now,
      clockTolerance: clockToleranceSeconds,
      maxTokenAge: logoutTokenMaxSeconds,
      requiredClaims: ['iat', 'jti', 'events'],
    })
    if (!isLogoutType(protectedHeader.typ)) return undefined
    const claims = LogoutClaims.safeParse(payload)
    if (!claims.success) return undefined
    const { jti, sub = null, sid = null } = claims.data
    return sub === null && sid === null ? undefined : { jti, subject: sub, providerSession: sid }
  } catch (error) {
    if (error instanceof errors.JWKSTimeout || !(error instanceof errors.JOSEError)) throw error
    return undefined
  }
}

/** Providers that are older than the name send none, or the general one. */
const isLogoutType = (type: string | undefined) =>
  type === undefined || ['logout+jwt', 'application/logout+jwt', 'jwt'].includes(type.toLowerCase())
