import type { MemberEdit } from '@gatehouse/contract/members/member'
import type { Role } from '@gatehouse/contract/role'

import { makeInvitation } from '#access/member-links/make-link.ts'
import {
  editMember,
  inviteAgain,
  inviteMember,
  lockMembers,
  type MemberManager,
} from '#access/members/change-member.ts'
import {
  findMemberByEmail,
  findMemberPosition,
  listMemberRows,
  type MemberRow,
} from '#access/members/member-store.ts'
import { findOrganization } from '#access/organizations/organization-store.ts'
import { operator } from '#audit/event.ts'
import type { Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import type { CommandOutput, OperatorDeps } from './command.ts'
import { noOrganization } from './present.ts'

type MembersDeps = Pick<OperatorDeps, 'db' | 'announce' | 'now'>
type InviteDeps = MembersDeps & Pick<OperatorDeps, 'hashKey' | 'publicUrl'>

const pageSize = 100

export async function listMemberPage(
  organizationId: string,
  afterId: string | undefined,
  { db }: MembersDeps,
): Promise<CommandOutput> {
  if (!(await findOrganization(db, organizationId))) throw noOrganization(organizationId)
  const after =
    afterId === undefined ? undefined : await findMemberPosition(db, organizationId, afterId)
  if (afterId !== undefined && !after) throw new Error(`No member has the id '${afterId}'.`)
  const page = { after, limit: pageSize, order: 'asc' } as const
  const rows = await listMemberRows(db, organizationId, {}, page)
  const data = rows.slice(0, pageSize).map(present)
  const hasMore = rows.length > pageSize
  const lines = data.map(({ id, email, role, status, name }) =>
    [id, email, role, status, name].join('  '),
  )
  const next = hasMore
    ? [`There are more: members list ${organizationId} --after ${data.at(-1)?.id}`]
    : []
  const text = [...lines, ...next].join('\n') || 'The organization has no members yet.'
  return { result: { data, has_more: hasMore }, text: `${text}\n` }
}

export const inviteByOperator = (
  organizationId: string,
  invitation: { email: string; role: Role; name: string | undefined },
  deps: InviteDeps,
) => invite(organizationId, deps, (tx, manager) => inviteMember(tx, invitation, manager, deps))

/** A new link for a member who has not signed in yet. */
export const renewInvitation = (organizationId: string, email: string, deps: InviteDeps) =>
  invite(organizationId, deps, async (tx, manager) => {
    const { id } = await requireByEmail(tx, organizationId, email)
    return inviteAgain(tx, { id }, manager, deps)
  })

/** Prints the link of the invited member, too. */
const invite = (
  organizationId: string,
  deps: InviteDeps,
  work: (tx: Tx, manager: MemberManager) => Promise<MemberRow>,
) =>
  change(organizationId, deps, async (tx, manager) => {
    const member = await work(tx, manager)
    return { member, ...(await makeInvitation(tx, member, deps)) }
  })

export const setMemberRole = (
  organizationId: string,
  { email, role }: { email: string; role: Role },
  deps: MembersDeps,
) => editByEmail(organizationId, { email, edit: { role } }, deps)

export const suspendMember = (organizationId: string, email: string, deps: MembersDeps) =>
  editByEmail(organizationId, { email, edit: { status: 'suspended' } }, deps)

const editByEmail = (
  organizationId: string,
  { email, edit }: { email: string; edit: MemberEdit },
  deps: MembersDeps,
) =>
  change(organizationId, deps, async (tx, manager) => {
    const { id } = await requireByEmail(tx, organizationId, email)
    return { member: await editMember(tx, { id, edit }, manager, deps) }
  })

export async function requireByEmail(tx: Tx, organizationId: string, email: string) {
  const member = await findMemberByEmail(tx, organizationId, email)
  if (!member) throw new Error(`The organization has no member with the address '${email}'.`)
  return member
}

async function change(
  organizationId: string,
  { db }: MembersDeps,
  work: (tx: Tx, manager: MemberManager) => Promise<{ member: MemberRow } & object>,
): Promise<CommandOutput> {
  const manager = { organizationId, acting: { kind: 'operator' }, by: operator } as const
  const { member, ...more } = await transact(db, async (tx) => {
    if (!(await lockMembers(tx, organizationId))) throw noOrganization(organizationId)
    return work(tx, manager)
  })
  return { result: { ...present(member), ...more } }
}

const present = (row: MemberRow) => ({
  id: row.id,
  email: row.email,
  name: row.name,
  role: row.role,
  role_source: row.role_source,
  status: row.status,
  last_seen_at: row.last_seen_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
})
