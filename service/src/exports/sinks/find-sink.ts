import { requireWritable, type WritingCaller } from '#access/managed/require-writable.ts'
import type { Announce } from '#audit/announce.ts'
import { notFound } from '#platform/api-error.ts'
import type { Db, Tx } from '#platform/database.ts'

import { asResource } from './present-sink.ts'
import { findSink, findSinkWithDelivery, lockSink } from './sink-store.ts'
import type { Sink } from './sink.ts'

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

/** Locks its row until the transaction ends. One that the request may not change, because of its set, is a 409. */
export async function lockRequiredSink(
  tx: Tx,
  deps: { announce: Announce },
  caller: WritingCaller,
  id: string,
): Promise<Sink> {
  const sink = await lockSink(tx, caller.principal.organizationId, id)
  if (!sink) throw notFound('export')
  const managedBy = await requireWritable(tx, deps, caller, {
    table: 'export_sink',
    id,
    managedBy: sink.managedBy,
    present: (set) => asResource({ ...sink, managedBy: set }),
  })
  return { ...sink, managedBy }
}
