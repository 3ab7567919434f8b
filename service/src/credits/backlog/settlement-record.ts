import { z } from 'zod'

import type { Settlement } from '#credits/settlement.ts'

// A settlement as JSON text, for the files of the backlog.

const Bytes = z.codec(z.base64(), z.instanceof(Buffer), {
  decode: (text) => Buffer.from(text, 'base64'),
  encode: (bytes) => bytes.toString('base64'),
})
const Amount = z.codec(z.string().regex(/^\d{1,19}$/), z.bigint(), {
  decode: (text) => BigInt(text),
  encode: String,
})
const Moment = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})

const SettlementRecord = z.object({
  organizationId: z.string(),
  id: z.string(),
  amount: Amount,
  meta: z.looseObject({}),
  event: z.object({
    id: z.string(),
    day: z.string(),
    shard: z.int(),
    organizationId: z.string(),
    kind: z.literal('enforcement'),
    at: Moment,
    header: z.record(z.string(), z.union([z.string(), z.number(), z.null()])),
    payload: Bytes,
    salt: Bytes,
    payloadHash: Bytes,
  }),
})
const Settlements = z.array(SettlementRecord)

export const writeSettlements = (settlements: readonly Settlement[]): string =>
  JSON.stringify(z.encode(Settlements, settlements as never))

/** The text comes from a trusted file, so this process or another one of ours wrote it. */
export const readSettlements = (text: string) =>
  z.decode(Settlements, JSON.parse(text) as never) as unknown as Settlement[]
