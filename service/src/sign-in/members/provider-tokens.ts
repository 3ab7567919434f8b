import type { SecretBox } from '#platform/secrets.ts'

import type { ProviderSessionRow } from './provider-session-store.ts'

type TokenName = 'id_token' | 'refresh_token'
type Place = Pick<ProviderSessionRow, 'organization_id' | 'session_id'>

const contextOf = (name: TokenName, { organization_id, session_id }: Place) =>
  `provider_session.${name}:${organization_id}:${session_id}`

/** With a refresh token one can act for the account at the provider; with an ID token one can end its session there. */
export const sealToken = (box: SecretBox, name: TokenName, place: Place, token: string | null) =>
  token === null ? null : box.seal(Buffer.from(token), contextOf(name, place))

/** Null if there is none, or if no key of MASTER_KEYS opens it any more. */
export function openToken(box: SecretBox, name: TokenName, row: ProviderSessionRow): string | null {
  const sealed = row[name]
  if (!sealed) return null
  try {
    return box.open(sealed, contextOf(name, row)).toString()
  } catch {
    return null
  }
}
