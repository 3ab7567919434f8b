import type { ProposalStatus } from '@gatehouse/contract/policy-gateway/proposals'
import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

import type { Proposal } from './proposal.ts'

const columns = sql`id, organization_id as "organizationId", status, content, secret, base, comment,
  for_set as "set", takes_over as "takesOver", proposed_by as "proposedBy", decided_by as "decidedBy", created_at as "createdAt",
  decided_at as "decidedAt"`

/** Decided proposals that are kept, per organization. */
const decidedMax = 50

/** Returns one proposal more than the limit if there are more. */
export async function listProposals(
  db: Db,
  { organizationId, status }: { organizationId: string; status: ProposalStatus | undefined },
  page: Page,
): Promise<Proposal[]> {
  const direction = page.order === 'asc' ? sql`asc` : sql`desc`
  const { rows } = await sql<Proposal>`
    select ${columns} from gateway_proposal
    where organization_id = ${organizationId} and ${isAfter(page)}
      ${status === undefined ? sql`` : sql`and status = ${status}`}
    order by created_at ${direction}, id ${direction} limit ${page.limit + 1}`.execute(db)
  return rows
}

export async function findProposalPosition(
  db: Db,
  organizationId: string,
  id: string,
): Promise<Position | undefined> {
  return db
    .selectFrom('gateway_proposal')
    .select(['id', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

export async function findProposal(
  db: Db | Tx,
  organizationId: string,
  id: string,
): Promise<Proposal | undefined> {
  const { rows } = await sql<Proposal>`
    select ${columns} from gateway_proposal
    where organization_id = ${organizationId} and id = ${id}`.execute(db)
  return rows[0]
}

/** The organization has to be locked, so that the number stays true. */
export async function countOpenProposals(tx: Tx, organizationId: string): Promise<number> {
  const { count } = await tx
    .selectFrom('gateway_proposal')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('organization_id', '=', organizationId)
    .where('status', '=', 'open')
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function insertProposal(tx: Tx, proposal: Proposal) {
  await tx
    .insertInto('gateway_proposal')
    .values({
      id: proposal.id,
      organization_id: proposal.organizationId,
      status: proposal.status,
      content: JSON.stringify(proposal.content),
      secret: proposal.secret,
      base: proposal.base,
      comment: proposal.comment,
      for_set: proposal.set,
      takes_over: proposal.takesOver,
      proposed_by: proposal.proposedBy,
      created_at: proposal.createdAt,
    })
    .execute()
}

/** Writes how a proposal ended, without its secret, and removes what was decided long ago. The organization is locked. */
export async function saveDecision(tx: Tx, proposal: Proposal) {
  const { organizationId } = proposal
  await tx
    .updateTable('gateway_proposal')
    .set({
      status: proposal.status,
      secret: null,
      decided_by: proposal.decidedBy,
      decided_at: proposal.decidedAt,
    })
    .where('organization_id', '=', organizationId)
    .where('id', '=', proposal.id)
    .execute()
  await sql`
    delete from gateway_proposal where organization_id = ${organizationId} and status <> 'open' and id not in (
      select id from gateway_proposal where organization_id = ${organizationId} and status <> 'open'
      order by decided_at desc, id desc limit ${decidedMax}
    )`.execute(tx)
}

export type SealedProposal = { id: string; organizationId: string; secret: Buffer }

/** Sealed secrets of the proposals of all organizations, in the order of their ids. */
export async function listSealedProposals(
  db: Db,
  after: string,
  limit: number,
): Promise<SealedProposal[]> {
  const { rows } = await sql<SealedProposal>`
    select id, organization_id as "organizationId", secret from gateway_proposal
    where id > ${after} and secret is not null order by id limit ${limit}`.execute(db)
  return rows
}

/** False if the proposal was decided meanwhile. */
export async function replaceSealedProposal(
  db: Db,
  { id, organizationId, secret }: SealedProposal,
  sealed: Buffer,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update gateway_proposal set secret = ${sealed}
    where organization_id = ${organizationId} and id = ${id} and secret = ${secret}`.execute(db)
  return numAffectedRows === 1n
}
