import { pageOf } from '@gatehouse/contract/list'
import {
  listGatewayProposals,
  retrieveGatewayProposal,
} from '@gatehouse/contract/policy-gateway/proposals'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import { notFound } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { findProposal, findProposalPosition, listProposals } from './proposal-store.ts'
import { presentProposal } from './proposal.ts'

export function serveListGatewayProposals(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listGatewayProposals, async ({ query }, { principal: { organizationId } }) => {
    const page = await readPage(query, (id) => findProposalPosition(db, organizationId, id))
    const rows = await listProposals(db, { organizationId, status: query.status }, page)
    return pageOf(rows.map(presentProposal), query.limit)
  })
}

export function serveRetrieveGatewayProposal(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, retrieveGatewayProposal, async ({ params }, { principal: { organizationId } }) => {
    const found = await findProposal(db, organizationId, params.proposal_id)
    if (!found) throw notFound('proposal')
    return { proposal: presentProposal(found) }
  })
}
