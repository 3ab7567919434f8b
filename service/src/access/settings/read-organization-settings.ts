import { readOrganizationSettings } from '@gatehouse/contract/organization/settings'
import type { FastifyInstance } from 'fastify'

import { findOrganization } from '#access/organizations/organization-store.ts'
import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'

import { presentSettings } from './settings.ts'

export function serveReadOrganizationSettings(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, readOrganizationSettings, async (_, { principal: { organizationId } }) =>
    presentSettings(await findOrganization(db, organizationId)),
  )
}
