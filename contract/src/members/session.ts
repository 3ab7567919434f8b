import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { listOf } from '../list.ts'
import { AnyId, idOf, Timestamp } from '../text.ts'

export const MemberSession = z
  .object({
    id: idOf('ses'),
    object: z.literal('organization.session'),
    member_id: idOf('mem'),
    form: z
      .enum(['browser', 'token'])
      .describe('`browser`: its secret is in a cookie. `token`: a program has it.'),
    method: z.string().describe('How its person has signed in: `link`, `device`, or a provider.'),
    created_at: Timestamp,
    last_seen_at: Timestamp.describe('To the minute.'),
    expires_at: Timestamp.describe('When it ends at the latest.'),
    is_current: z.boolean().describe('Whether it is the session that this request came with.'),
  })
  .meta({ id: 'MemberSession' })
export type MemberSession = z.infer<typeof MemberSession>

const sessions = '/v1/organization/members/:member_id/sessions'
const params = z.object({ member_id: AnyId })

export const listMemberSessions = adminEndpoint({
  id: 'listMemberSessions',
  summary: 'List where a member is signed in: the open sessions, the newest first',
  method: 'GET',
  path: sessions,
  permission: 'members.read',
  orSelf: true,
  params,
  response: listOf(MemberSession).meta({ id: 'MemberSessionList' }),
  errors: ['member_not_found'],
})

export const deleteMemberSessions = adminEndpoint({
  id: 'deleteMemberSessions',
  summary: 'Sign a member out everywhere within 5 seconds; for a member also the calling session',
  method: 'DELETE',
  path: sessions,
  permission: 'members.write',
  orSelf: true,
  params,
  response: z
    .object({
      id: idOf('mem'),
      object: z.literal('organization.member.sessions.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedMemberSessions' }),
  errors: ['member_not_found'],
})

export const deleteMemberSession = adminEndpoint({
  id: 'deleteMemberSession',
  summary: 'End one session of a member everywhere within 5 seconds',
  method: 'DELETE',
  path: `${sessions}/:session_id`,
  permission: 'members.write',
  orSelf: true,
  params: params.extend({ session_id: AnyId }),
  response: z
    .object({
      id: idOf('ses'),
      object: z.literal('organization.session.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedMemberSession' }),
  errors: ['member_not_found', 'session_not_found'],
})
