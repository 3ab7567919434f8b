import { readGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'

import { findConfig } from './config-store.ts'
import { present } from './saved-config.ts'

export function serveReadGatewayConfig(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, readGatewayConfig, async (_, { principal: { organizationId } }) =>
    present(await findConfig(db, organizationId)),
  )
}
