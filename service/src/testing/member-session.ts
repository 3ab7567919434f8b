import type { ProjectRole, Role } from '@gatehouse/contract/role'

import { startSession } from '#access/sessions/start-session.ts'
import type { House } from '#assemble.ts'
import { createId } from '#platform/id.ts'
import { transact } from '#platform/transaction.ts'

type Wanted = {
  organizationId: string
  role: Role
  /** The projects that the member belongs to, by id. */
  projectRoles?: Readonly<Record<string, ProjectRole>>
  /** What the member is after having signed in; active unless given. */
  status?: 'active' | 'suspended'
  email?: string
  form?: 'browser' | 'token'
}

/** A member who has signed in. `token` is sent as `Authorization: Bearer`, or as the cookie of a browser. */
export async function createMemberSession(
  {
    db,
    now,
    hashKey,
    announce,
    access,
  }: Pick<House, 'db' | 'now' | 'hashKey' | 'announce' | 'access'>,
  wanted: Wanted,
): Promise<{ memberId: string; token: string; sessionId: string }> {
  const { organizationId, role, projectRoles = {}, status = 'active', form = 'token' } = wanted
  const createdAt = now()
  const memberId = createId('mem', createdAt)
  const email = wanted.email ?? `${memberId}@example.com`
  return transact(db, async (tx) => {
    const member = { organization_id: organizationId, id: memberId, email, name: 'Member', role }
    await tx
      .insertInto('member')
      .values({ ...member, status: 'active', created_at: createdAt })
      .execute()
    for (const [project_id, projectRole] of Object.entries(projectRoles)) {
      const ids = { organization_id: organizationId, project_id, member_id: memberId }
      await tx
        .insertInto('project_member')
        .values({ ...ids, role: projectRole, created_at: createdAt })
        .execute()
    }
    const session = await startSession(
      tx,
      {
        owner: { organizationId, memberId },
        form,
        method: 'test',
        requestId: null,
        now: createdAt,
      },
      { hashKey, announce, sessionMaxMs: access.sessionMaxMs },
    )
    if (!session) throw new Error('an active member can sign in')
    if (status !== 'active') {
      await tx
        .updateTable('member')
        .set({ status })
        .where('organization_id', '=', organizationId)
        .where('id', '=', memberId)
        .execute()
    }
    return { memberId, token: session.token, sessionId: session.id }
  })
}
