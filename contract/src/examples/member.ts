import type * as meContract from '../members/me.ts'
import type * as contract from '../members/member.ts'
import type * as sessionContract from '../members/session.ts'
import { Role, roleMeanings, rolePermissions } from '../role.ts'
import { type ExampleOf, ids, morning } from './example.ts'

const member: contract.Member = {
  id: ids.member,
  object: 'organization.member',
  email: 'ada@example.com',
  name: 'Ada Lovelace',
  role: 'policy_editor',
  role_source: 'assigned',
  status: 'active',
  last_seen_at: morning + 3600,
  managed_by: null,
  created_at: morning,
}
const session: sessionContract.MemberSession = {
  id: ids.session,
  object: 'organization.session',
  member_id: ids.member,
  form: 'browser',
  method: 'entra',
  created_at: morning,
  last_seen_at: morning + 3600,
  expires_at: morning + 8 * 3600,
  is_current: true,
}
const params = { member_id: ids.member }
const invitation = {
  invitation_url:
    'https://gateway.example.com/auth/invitation#gate_inv_0000000000000000000000000000000000000000000000000',
  invitation_expires_at: morning + 7 * 86_400,
}
const list = { object: 'list', has_more: false } as const

export const memberExamples = {
  listMembers: {
    query: { limit: '20', status: 'active' },
    answer: { ...list, data: [member], first_id: ids.member, last_id: ids.member },
  } satisfies ExampleOf<typeof contract.listMembers>,
  createMember: {
    body: { email: member.email, name: member.name, role: member.role },
    answer: { ...member, status: 'invited', last_seen_at: null, ...invitation },
  } satisfies ExampleOf<typeof contract.createMember>,
  createMemberInvitation: {
    params,
    answer: {
      id: ids.member,
      object: 'organization.member.invitation',
      email: member.email,
      ...invitation,
    },
  } satisfies ExampleOf<typeof contract.createMemberInvitation>,
  retrieveMember: {
    params,
    answer: member,
  } satisfies ExampleOf<typeof contract.retrieveMember>,
  updateMember: {
    params,
    body: { role: 'policy_publisher' },
    answer: { ...member, role: 'policy_publisher' },
  } satisfies ExampleOf<typeof contract.updateMember>,
  deleteMember: {
    params,
    answer: { id: ids.member, object: 'organization.member.deleted', deleted: true },
  } satisfies ExampleOf<typeof contract.deleteMember>,
  listMemberSessions: {
    params,
    answer: { ...list, data: [session], first_id: ids.session, last_id: ids.session },
  } satisfies ExampleOf<typeof sessionContract.listMemberSessions>,
  deleteMemberSessions: {
    params,
    answer: { id: ids.member, object: 'organization.member.sessions.deleted', deleted: true },
  } satisfies ExampleOf<typeof sessionContract.deleteMemberSessions>,
  deleteMemberSession: {
    params: { ...params, session_id: ids.session },
    answer: { id: ids.session, object: 'organization.session.deleted', deleted: true },
  } satisfies ExampleOf<typeof sessionContract.deleteMemberSession>,
  listRoles: {
    answer: {
      ...list,
      data: Role.options.map((id) => ({
        id,
        object: 'organization.role' as const,
        description: roleMeanings[id],
        permissions: [...rolePermissions[id]],
      })),
      first_id: 'owner',
      last_id: 'viewer',
    },
  } satisfies ExampleOf<typeof contract.listRoles>,
  readMe: {
    answer: {
      object: 'organization.me',
      credential: { kind: 'session', id: null },
      member,
      csrf_token: 'Vw0uAdqRQ9tG8nXn4m3mQk3nJ5cI6m0Jt3l1c0o9aYU',
      organization: { id: ids.organization, name: 'Example Ltd' },
      role: member.role,
      role_source: member.role_source,
      permissions: [...rolePermissions.policy_editor],
      projects: [{ id: ids.project, name: 'Support assistant', role: 'project_member' }],
      has_more_projects: false,
      read_only: false,
      plan: 'growth',
      tier: 'tier_2',
      billing: 'prepaid',
      features: { judge: true, tokens: false, payments: true },
    },
  } satisfies ExampleOf<typeof meContract.readMe>,
}
