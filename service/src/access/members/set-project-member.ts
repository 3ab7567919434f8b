import { setProjectMember } from '@gatehouse/contract/members/project-member'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { lockActiveProject } from '#access/projects/lock-active-project.ts'
import type { Membership } from '#access/projects/project-role-store.ts'
import { confirmStanding } from '#access/projects/standing.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached, notFound } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

import { presentProjectMember } from './present-project-member.ts'
import {
  countMemberships,
  findProjectMember,
  lockPerson,
  type ProjectMemberRow,
  saveProjectMember,
} from './project-member-store.ts'

const membersPerProjectMax = 1000
const projectsPerMemberMax = 1000 // a session carries all of them

export function serveSetProjectMember(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, setProjectMember, deps, {
    async change(tx, { params, body: { role } }, context) {
      const { principal } = context
      const { organizationId } = principal
      const project = await lockActiveProject(tx, organizationId, params.project_id)
      await confirmStanding(tx, setProjectMember, principal, project.id)
      const member = await lockPerson(tx, organizationId, params.member_id)
      if (!member) throw notFound('member')
      const membership = { organizationId, projectId: project.id, memberId: member.id }
      const earlier = await findProjectMember(tx, membership)
      if (earlier?.role === role) return presentProjectMember(earlier)
      if (!earlier) await refuseOneTooMany(tx, membership)
      const now = deps.now()
      await saveProjectMember(tx, membership, { role, now })
      const joined: ProjectMemberRow = { ...member, project_id: project.id, role, created_at: now }
      const after = presentProjectMember(earlier ? { ...earlier, role } : joined)
      const revision = { organizationId, by: callerOf(context), notifies: 'member' as const }
      await deps.announce(tx, {
        ...revision,
        action: earlier ? 'updated' : 'created',
        before: earlier ? presentProjectMember(earlier) : null,
        after,
      })
      return after
    },
  })
}

/** The locks of the project and of the member keep two requests from both passing. */
async function refuseOneTooMany(tx: Tx, { organizationId, projectId, memberId }: Membership) {
  const inProject = await countMemberships(tx, organizationId, { projectId }, membersPerProjectMax)
  if (inProject >= membersPerProjectMax) {
    throw limitReached('members in a project', membersPerProjectMax)
  }
  const ofMember = await countMemberships(tx, organizationId, { memberId }, projectsPerMemberMax)
  if (ofMember >= projectsPerMemberMax) {
    throw limitReached('projects of a member', projectsPerMemberMax)
  }
}
