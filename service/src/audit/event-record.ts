import { z } from 'zod'

import type { Event } from './event.ts'

// An event as JSON text, for files that wait for the database.

const Bytes = z.codec(z.base64(), z.instanceof(Buffer), {
  decode: (text) => Buffer.from(text, 'base64'),
  encode: (bytes) => bytes.toString('base64'),
})
const Moment = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})

const PlainValue = z.union([z.string(), z.number(), z.boolean(), z.null()])
const HeaderValue = z.union([
  PlainValue,
  z.array(z.string()),
  z.array(z.record(z.string(), PlainValue)),
])

export const EventRecord = z.object({
  id: z.string(),
  day: z.string(),
  shard: z.int(),
  organizationId: z.string(),
  kind: z.literal('enforcement'),
  at: Moment,
  header: z.record(z.string(), HeaderValue),
  payload: Bytes,
  salt: Bytes,
  payloadHash: Bytes,
})
const Events = z.array(EventRecord)

export const writeEvents = (events: readonly Event[]): string =>
  JSON.stringify(z.encode(Events, events as never))

/** The text comes from a trusted file, so this process or another one of ours wrote it. */
export const readEvents = (text: string): Event[] => z.decode(Events, JSON.parse(text) as never)
