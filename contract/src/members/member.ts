import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { listOf, ListQuery } from '../list.ts'
import { changesManaged, createsManaged, ManagedBy } from '../managed.ts'
import { Permission } from '../permission.ts'
import { Role } from '../role.ts'
import { AnyId, idOf, Timestamp, trimmedText } from '../text.ts'

export const MemberStatus = z
  .enum(['invited', 'active', 'suspended'])
  .describe(
    '`invited`: has never signed in. `suspended`: cannot sign in, and everything of theirs has ended.',
  )
export type MemberStatus = z.infer<typeof MemberStatus>

/** Without quotes, comments and other alphabets, so that one address has one spelling. */
export const EmailAddress = z
  .string()
  .trim()
  .min(3)
  .max(254, { error: 'must be at most 254 characters long', abort: true })
  .regex(/^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/, {
    error: 'must be an address such as ada@example.com',
  })
  .toLowerCase()

export const Member = z
  .object({
    id: idOf('mem'),
    object: z.literal('organization.member'),
    email: z.string(),
    name: z.string(),
    role: Role,
    role_source: z.string().describe('`assigned`, or the group that has given the role.'),
    status: MemberStatus,
    last_seen_at: Timestamp.nullable(),
    managed_by: ManagedBy,
    created_at: Timestamp,
  })
  .meta({ id: 'Member' })
export type Member = z.infer<typeof Member>

/** Shown once: only a hash of the secret is stored. Null where the operator has not set up sign-in. */
const invitationMembers = {
  invitation_url: z
    .string()
    .nullable()
    .describe(
      'Leads the person to the sign-in; shown once. null: the operator has not set PUBLIC_URL.',
    ),
  invitation_expires_at: Timestamp.nullable(),
}

const InvitedMember = Member.extend(invitationMembers).meta({ id: 'InvitedMember' })

const MemberInvitation = z
  .object({
    id: idOf('mem').describe('The id of the member.'),
    object: z.literal('organization.member.invitation'),
    email: z.string(),
    ...invitationMembers,
  })
  .meta({ id: 'MemberInvitation' })

const MemberCreation = z
  .strictObject({
    email: EmailAddress.describe('Unique in the organization; kept in lower case.'),
    name: trimmedText(1, 80).optional().describe('Default: what stands before the @.'),
    role: Role,
  })
  .meta({ id: 'MemberCreation' })

const MemberEdit = z
  .strictObject({
    name: trimmedText(1, 80).optional(),
    role: Role.optional(),
    status: z
      .enum(['active', 'suspended'])
      .optional()
      .describe('`active` ends a suspension; a member who has never signed in is then `invited`.'),
  })
  .refine((edit) => Object.values(edit).some((value) => value !== undefined), {
    error: 'must have at least one member',
  })
  .meta({ id: 'MemberEdit' })
export type MemberEdit = z.output<typeof MemberEdit>

/** A person who must be stopped is stopped, whichever set manages the member. */
function isOnlySuspension(body: unknown): boolean {
  const { status, ...others } = MemberEdit.parse(body)
  return status === 'suspended' && Object.values(others).every((value) => value === undefined)
}

const MemberListQuery = ListQuery.extend({
  status: MemberStatus.optional(),
  role: Role.optional(),
  email: EmailAddress.optional().describe('The whole address.'),
})

const OrganizationRole = z
  .object({
    id: Role,
    object: z.literal('organization.role'),
    description: z.string(),
    permissions: z.array(Permission),
  })
  .meta({ id: 'OrganizationRole' })

const members = '/v1/organization/members'
const params = z.object({ member_id: AnyId })

export const listMembers = adminEndpoint({
  id: 'listMembers',
  summary: 'List the members of the organization',
  method: 'GET',
  path: members,
  permission: 'members.read',
  query: MemberListQuery,
  response: listOf(Member).meta({ id: 'MemberList' }),
  errors: ['invalid_cursor'],
})

export const createMember = adminEndpoint({
  id: 'createMember',
  summary: 'Invite a person; the first sign-in makes the member active',
  method: 'POST',
  path: members,
  permission: 'members.write',
  ...createsManaged,
  orPermission: {
    permission: 'admin_api_keys.write',
    when: 'of a key, to create an owner while no owner is active',
  },
  body: MemberCreation,
  response: InvitedMember,
  successStatus: 201,
  errors: ['member_email_taken', 'limit_reached'],
})

export const createMemberInvitation = adminEndpoint({
  id: 'createMemberInvitation',
  summary: 'Make a new link for a member who has not accepted the invitation; the earlier one ends',
  method: 'POST',
  path: `${members}/:member_id/invitation`,
  permission: 'members.write',
  params,
  response: MemberInvitation,
  successStatus: 201,
  errors: ['member_not_found', 'member_not_invited'],
})

export const retrieveMember = adminEndpoint({
  id: 'retrieveMember',
  summary: 'Read a member',
  method: 'GET',
  path: `${members}/:member_id`,
  permission: 'members.read',
  params,
  response: Member,
  errors: ['member_not_found'],
})

export const updateMember = adminEndpoint({
  id: 'updateMember',
  summary: 'Rename, suspend or reinstate a member, or give another role, within 5 seconds',
  method: 'PATCH',
  path: `${members}/:member_id`,
  permission: 'members.write',
  ...changesManaged,
  exemptFromSet: { when: 'that only suspends', isMet: isOnlySuspension },
  params,
  body: MemberEdit,
  response: Member,
  errors: ['member_not_found', 'last_owner'],
})

export const deleteMember = adminEndpoint({
  id: 'deleteMember',
  summary: 'Remove a member; everything of theirs ends everywhere within 5 seconds',
  method: 'DELETE',
  path: `${members}/:member_id`,
  permission: 'members.write',
  ...changesManaged,
  params,
  response: z
    .object({
      id: idOf('mem'),
      object: z.literal('organization.member.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedMember' }),
  errors: ['member_not_found', 'last_owner'],
})

export const listRoles = adminEndpoint({
  id: 'listRoles',
  summary: 'List the roles that members can have, with their permissions',
  method: 'GET',
  path: '/v1/organization/roles',
  permission: 'members.read',
  response: listOf(OrganizationRole).meta({ id: 'OrganizationRoleList' }),
  errors: [],
})
