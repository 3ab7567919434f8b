import { readOrganizationCredits } from '@gatehouse/contract/organization-credits'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'

import { readBalance, type ReadCreditsDeps } from './read-credits.ts'

/** `GET /v1/organization/credits`: the balance that project keys read, for administrators. */
export function serveReadOrganizationCredits(app: FastifyInstance, deps: ReadCreditsDeps) {
  bind(app, readOrganizationCredits, (_, { principal }) =>
    readBalance(deps, principal.organizationId),
  )
}
