import type { CredentialKind } from '@gatehouse/contract/endpoint'
import type { actorTypes } from '@gatehouse/contract/exports/audit-event'

/** What an actor is. The set is closed: readers of the log rely on it (docs/specification/audit-events.md#actors). */
export type ActorType = (typeof actorTypes)[number]

/** Who brought an event about, and with which request, if there was one. */
export type Actor = {
  /** The id of a key or of a member, issuer and subject of a token, or a word for one who has no id. */
  readonly id: string
  readonly type: ActorType
  readonly requestId: string | null
  /** Who the member is. */
  readonly person?: Person
}

type Person = { readonly name: string; readonly email: string }

/** What an event says of a caller: a part of `Principal` in http/. */
export type Acting = {
  readonly kind: CredentialKind | 'anonymous'
  readonly credentialId: string
  readonly member: Person | null
}

/** A session is a member's, or that of the administrator key which has opened it. */
export function actorTypeOf({ kind, member }: Pick<Acting, 'kind' | 'member'>): ActorType {
  if (kind === 'session') return member ? 'member' : 'admin_key'
  return kind === 'jwt' ? 'token' : kind
}

/** The actor in the header, which can never be erased: it is hashed into the log. */
export const describeActor = ({ id, type, requestId }: Actor) => ({
  actor: id,
  actor_type: type,
  request_id: requestId,
})

/** The person in the payload, which can be erased. */
export const personOf = ({ person }: Actor) => (person ? { actor: person } : {})
