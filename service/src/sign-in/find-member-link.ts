import type { FastifyRequest } from 'fastify'

import {
  findLink,
  type FoundLink,
  type LinkKind,
  type LinkName,
} from '#access/member-links/link-store.ts'
import { readLinkSecret } from '#access/member-links/make-link.ts'
import { addressPrefix } from '#platform/client-address.ts'

import type { SignInDeps } from './deps.ts'
import { SignInRefused } from './sign-in-refused.ts'

const unusable = { sign_in: 'link_unusable', invitation: 'invitation_unusable' } as const

export const unusableLink = (kind: LinkKind) => new SignInRefused(unusable[kind])

/** The link whose secret a page of ours has sent. Unknown ones count as guesses of the address that sends them. */
export async function findMemberLink(
  kind: LinkKind,
  text: string,
  { ip }: FastifyRequest,
  { db, now, hashKey, linkGuesses }: SignInDeps,
): Promise<{ name: LinkName; link: FoundLink }> {
  const name = readLinkSecret(kind, text, hashKey)
  if (!name) throw unusableLink(kind)
  const address = addressPrefix(ip)
  linkGuesses.refuseBlocked(address)
  const link = await findLink(db, name, now())
  if (!link) {
    linkGuesses.note(address, name.hashes[0]?.toString('base64') ?? '')
    throw unusableLink(kind)
  }
  const { organization_id: organizationId } = link
  if (link.organization_status === 'suspended') {
    throw new SignInRefused('organization_suspended', { organizationId })
  }
  if (link.status === 'suspended') throw new SignInRefused('member_suspended', { organizationId })
  return { name, link }
}
