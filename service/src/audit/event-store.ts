import type { Tx } from '#platform/database.ts'

import type { Event } from './event.ts'

export async function insertEvent(tx: Tx, event: Event) {
  await tx
    .insertInto('event')
    .values({
      day: event.day,
      id: event.id,
      shard: event.shard,
      organization_id: event.organizationId,
      kind: event.kind,
      at: event.at,
      header: event.header,
      payload: event.payload,
      salt: event.salt,
      payload_hash: event.payloadHash,
    })
    .execute()
}
