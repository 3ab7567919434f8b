import { toPage } from '@gatehouse/contract/list'
import { listRoles } from '@gatehouse/contract/members/member'
import { Role, roleMeanings, rolePermissions } from '@gatehouse/contract/role'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'

const roles = Role.options.map((id) => ({
  id,
  object: 'organization.role' as const,
  description: roleMeanings[id],
  permissions: [...rolePermissions[id]],
}))

export function serveListRoles(app: FastifyInstance) {
  bind(app, listRoles, () => toPage(roles, false))
}
