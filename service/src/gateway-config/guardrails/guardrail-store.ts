import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

import type { SavedGuardrail } from './saved-guardrail.ts'

const columns = sql`id, organization_id as "organizationId", name, url, secret, enabled, mode,
  on_error as "onError", deadline_ms as "deadlineMs", project_ids as "projectIds", managed_by as "managedBy",
  created_at as "createdAt", updated_at as "updatedAt"`

/** Returns one guardrail more than the limit if there are more. */
export async function listGuardrailRows(
  db: Db,
  organizationId: string,
  page: Page,
): Promise<SavedGuardrail[]> {
  const direction = page.order === 'asc' ? sql`asc` : sql`desc`
  const { rows } = await sql<SavedGuardrail>`
    select ${columns} from guardrail
    where organization_id = ${organizationId} and ${isAfter(page)}
    order by created_at ${direction}, id ${direction} limit ${page.limit + 1}`.execute(db)
  return rows
}

export async function findGuardrailPosition(
  db: Db,
  organizationId: string,
  id: string,
): Promise<Position | undefined> {
  const { rows } = await sql<Position>`
    select id, created_at from guardrail
    where organization_id = ${organizationId} and id = ${id}`.execute(db)
  return rows[0]
}

export async function findGuardrail(
  db: Db,
  organizationId: string,
  id: string,
): Promise<SavedGuardrail | undefined> {
  const { rows } = await sql<SavedGuardrail>`
    select ${columns} from guardrail
    where organization_id = ${organizationId} and id = ${id}`.execute(db)
  return rows[0]
}

/** The names of an organization's guardrails, by their ids. The organization's row has to be locked, so that they stay true. */
export async function readGuardrailNames(
  tx: Tx,
  organizationId: string,
): Promise<Map<string, string>> {
  const { rows } = await sql<{ id: string; name: string }>`
    select id, name from guardrail where organization_id = ${organizationId}`.execute(tx)
  return new Map(rows.map(({ id, name }) => [id, name]))
}

export async function insertGuardrail(tx: Tx, guardrail: SavedGuardrail) {
  await sql`
    insert into guardrail (id, organization_id, name, url, secret, enabled, mode, on_error, deadline_ms,
      project_ids, managed_by, created_at, updated_at)
    values (${guardrail.id}, ${guardrail.organizationId}, ${guardrail.name}, ${guardrail.url},
      ${guardrail.secret}, ${guardrail.enabled}, ${guardrail.mode}, ${guardrail.onError},
      ${guardrail.deadlineMs}, ${guardrail.projectIds}, ${guardrail.managedBy}, ${guardrail.createdAt}, ${guardrail.updatedAt})`.execute(
    tx,
  )
}

export async function updateGuardrailRow(tx: Tx, guardrail: SavedGuardrail) {
  await sql`
    update guardrail set name = ${guardrail.name}, url = ${guardrail.url}, secret = ${guardrail.secret},
      enabled = ${guardrail.enabled}, mode = ${guardrail.mode}, on_error = ${guardrail.onError},
      deadline_ms = ${guardrail.deadlineMs}, project_ids = ${guardrail.projectIds},
      updated_at = ${guardrail.updatedAt}
    where organization_id = ${guardrail.organizationId} and id = ${guardrail.id}`.execute(tx)
}

export async function deleteGuardrailRow(tx: Tx, { organizationId, id }: SavedGuardrail) {
  await sql`
    delete from guardrail where organization_id = ${organizationId} and id = ${id}`.execute(tx)
}

export type SealedGuardrail = Pick<SavedGuardrail, 'id' | 'organizationId' | 'secret'>

/** Sealed secrets of all organizations, in the order of the ids of their guardrails. */
export async function listSealedGuardrails(
  db: Db,
  after: string,
  limit: number,
): Promise<SealedGuardrail[]> {
  const { rows } = await sql<SealedGuardrail>`
    select id, organization_id as "organizationId", secret from guardrail
    where id > ${after} order by id limit ${limit}`.execute(db)
  return rows
}

/** False if another secret was saved meanwhile. */
export async function replaceSealedGuardrail(
  tx: Tx,
  { id, organizationId, secret }: SealedGuardrail,
  sealed: Buffer,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update guardrail set secret = ${sealed}
    where organization_id = ${organizationId} and id = ${id} and secret = ${secret}`.execute(tx)
  return numAffectedRows === 1n
}
