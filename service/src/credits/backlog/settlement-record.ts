import { z } from 'zod'

import { EventRecord } from '#audit/event-record.ts'
import type { Settlement } from '#credits/settlement.ts'

// A settlement as JSON text, for the files of the backlog.

const Amount = z.codec(z.string().regex(/^\d{1,19}$/), z.bigint(), {
  decode: (text) => BigInt(text),
  encode: String,
})
const SettlementRecord = z.object({
  organizationId: z.string(),
  id: z.string(),
  amount: Amount,
  meta: z.looseObject({}),
  event: EventRecord,
  isOnlyRecorded: z.literal(true).optional(),
})
const Settlements = z.array(SettlementRecord)

export const writeSettlements = (settlements: readonly Settlement[]): string =>
  JSON.stringify(z.encode(Settlements, settlements as never))

/** The text comes from a trusted file, so this process or another one of ours wrote it. */
export const readSettlements = (text: string) =>
  z.decode(Settlements, JSON.parse(text) as never) as unknown as Settlement[]
