import { randomBytes } from 'node:crypto'

import { formatKey, type HashKey, hasKeyShape, type KeyPrefix } from '#access/secret.ts'
import { type Clock, toSeconds } from '#platform/clock.ts'
import type { Tx } from '#platform/database.ts'

import { type LinkKind, type LinkName, saveLink } from './link-store.ts'

const minuteMs = 60_000

/** How a link of each kind looks, and how long it can be used. */
const kinds = {
  sign_in: { prefix: 'gate_lnk_', page: '/auth/link', lifetimeMs: 10 * minuteMs },
  invitation: { prefix: 'gate_inv_', page: '/auth/invitation', lifetimeMs: 7 * 24 * 60 * minuteMs },
} as const satisfies Record<LinkKind, { prefix: KeyPrefix; page: string; lifetimeMs: number }>

export type LinkDeps = { hashKey: HashKey; now: Clock }

export type MadeLink = { url: string; expiresAt: Date }

/**
 * Makes a link for a member, which replaces an earlier one. The secret stands behind the `#`, which browsers send to no server, so
 * that no log has it.
 */
export async function makeLink(
  tx: Tx,
  kind: LinkKind,
  { organization_id: organizationId, id: memberId }: { organization_id: string; id: string },
  { hashKey, now, publicUrl }: LinkDeps & { publicUrl: string },
): Promise<MadeLink> {
  const { prefix, page, lifetimeMs } = kinds[kind]
  const secret = formatKey(prefix, randomBytes(32))
  const expiresAt = new Date(now().getTime() + lifetimeMs)
  await saveLink(tx, { organizationId, memberId, kind, hash: hashKey(secret)[0].hash, expiresAt })
  return { url: `${publicUrl}${page}#${secret}`, expiresAt }
}

/** The members of an answer that say how an invited person gets in; null without an address of this gateway for browsers. */
export async function makeInvitation(
  tx: Tx,
  member: { organization_id: string; id: string },
  { publicUrl, ...deps }: LinkDeps & { publicUrl: string | undefined },
): Promise<{ invitation_url: string | null; invitation_expires_at: number | null }> {
  if (publicUrl === undefined) return { invitation_url: null, invitation_expires_at: null }
  const { url, expiresAt } = await makeLink(tx, 'invitation', member, { ...deps, publicUrl })
  return { invitation_url: url, invitation_expires_at: toSeconds(expiresAt) }
}

/** Undefined for a text that cannot be the secret of such a link. */
export function readLinkSecret(kind: LinkKind, text: string, hashKey: HashKey) {
  const secret = text.trim()
  if (!secret.startsWith(kinds[kind].prefix) || !hasKeyShape(secret)) return undefined
  return { kind, hashes: hashKey(secret).map(({ hash }) => hash) } satisfies LinkName
}
