import { createHash } from 'node:crypto'

import type { Principal } from '#http/principal.ts'

/** What stands for the key of a caller: the key itself, or whom a token was issued to (G8.21). */
export function keyScopeOf({ kind, credentialId }: Principal): string {
  if (kind !== 'jwt') return credentialId
  // Issuer and subject are somebody else's text: of any length, with any characters.
  return `jwt_${createHash('sha256').update(credentialId).digest('base64url')}`
}
