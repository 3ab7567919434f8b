import { createHash } from 'node:crypto'

import type { Principal } from '#http/principal.ts'

/** The id of a caller's key scope: that of its key, or a hash of the issuer and subject of its token. */
export function keyScopeId({ kind, credentialId }: Principal): string {
  if (kind !== 'jwt') return credentialId
  // Issuer and subject come from outside: they may be of any length and have any characters.
  return `jwt_${createHash('sha256').update(credentialId).digest('base64url')}`
}
