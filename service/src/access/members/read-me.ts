import type { Plan, Tier } from '@gatehouse/contract/limits'
import { type Features, type Me, ownProjectsMax, readMe } from '@gatehouse/contract/members/me'
import type { FastifyInstance } from 'fastify'

import { findOrganization } from '#access/organizations/organization-store.ts'
import { unauthorized } from '#access/unauthorized.ts'
import { bind } from '#http/bind.ts'
import type { Principal } from '#http/principal.ts'
import type { Db } from '#platform/database.ts'

import { findMember, listOwnProjects } from './member-store.ts'
import { presentMember } from './present-member.ts'

type Deps = {
  db: Db
  billing: Me['billing']
  tierOf: (paying: { plan: Plan; paidMicroUsd: number }) => Tier
  areSessionsReadOnly: boolean
  /** What is set up at the moment. */
  findFeatures: () => Features
}

export function serveReadMe(app: FastifyInstance, deps: Deps) {
  const { db, billing, tierOf, findFeatures, areSessionsReadOnly } = deps
  bind(app, readMe, async (_, { principal }): Promise<Me> => {
    const { organizationId, permissions, plan } = principal
    const organization = await findOrganization(db, organizationId)
    if (!organization) throw new Error('a credential belongs to no organization')
    return {
      object: 'organization.me',
      credential: presentCredential(principal),
      ...(await describeMember(db, principal)),
      read_only: areSessionsReadOnly && principal.kind === 'session',
      csrf_token: principal.session?.csrfToken ?? null,
      organization: { id: organizationId, name: organization.name },
      permissions: [...permissions],
      plan,
      tier: tierOf(principal),
      billing,
      features: findFeatures(),
    }
  })
}

const presentCredential = ({ kind, credentialId, member }: Principal): Me['credential'] => ({
  kind: kind === 'session' ? kind : 'admin_key',
  id: member ? null : credentialId,
})

type Membership = Pick<Me, 'member' | 'role' | 'role_source' | 'projects' | 'has_more_projects'>

/** As the database has it: it may be newer than what is in force here. */
async function describeMember(db: Db, { organizationId, member }: Principal): Promise<Membership> {
  if (!member) {
    return { member: null, role: null, role_source: null, projects: [], has_more_projects: false }
  }
  const row = await findMember(db, organizationId, member.id)
  if (!row) throw unauthorized(readMe, 'invalid_session', 'You are no longer a member.')
  const projects = await listOwnProjects(db, row, ownProjectsMax)
  return {
    member: presentMember(row),
    role: row.role,
    role_source: row.role_source,
    projects: projects.slice(0, ownProjectsMax),
    has_more_projects: projects.length > ownProjectsMax,
  }
}
