import { notFound } from '#platform/api-error.ts'
import type { Db, Tx } from '#platform/database.ts'

import { findSink, findSinkWithDelivery, lockSink } from './sink-store.ts'

// A sink that does not exist, or belongs to another organization, is a 404.

export async function requireSink(db: Db, organizationId: string, id: string) {
  const sink = await findSink(db, organizationId, id)
  if (!sink) throw notFound('export')
  return sink
}

export async function requireSinkWithDelivery(db: Db | Tx, organizationId: string, id: string) {
  const sink = await findSinkWithDelivery(db, organizationId, id)
  if (!sink) throw notFound('export')
  return sink
}

/** Locks its row until the transaction ends. */
export async function lockRequiredSink(tx: Tx, organizationId: string, id: string) {
  const sink = await lockSink(tx, organizationId, id)
  if (!sink) throw notFound('export')
  return sink
}
