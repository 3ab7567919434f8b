import type { S3Config } from '@gatehouse/contract/exports/sink-config'

import type { ExportItem, ExportRecord } from '#exports/destinations/destination.ts'

/** The day of a record in UTC, as its folder has it. */
const dayOf = (createdAt: string) => new Date(createdAt).toISOString().slice(0, 10)

const isCheckpoint = ({ event_type }: ExportRecord) => event_type === 'checkpoint'

/** Objects have records of one day, and checkpoints have objects of their own. */
export const groupOf = (record: ExportRecord) =>
  (isCheckpoint(record) ? 'checkpoint ' : '') + dayOf(record.created_at)

/** Padded, so that names sort like numbers. */
export const padNumber = (number: number) => String(number).padStart(12, '0')

/** The same records always have the same name: what is sent again replaces what arrived the first time. */
export function nameObject(
  { prefix, compression }: Pick<S3Config, 'prefix' | 'compression'>,
  batch: readonly ExportItem[],
) {
  const [first, last] = [batch[0]?.record, batch.at(-1)?.record]
  if (!first || !last) throw new Error('A batch has at least one item.')
  const ending = compression === 'gzip' ? '.jsonl.gz' : '.jsonl'
  const numbers = { first: first.org_seq, last: last.org_seq }
  const range = `${padNumber(numbers.first)}-${padNumber(numbers.last)}`
  const folder = `date=${dayOf(first.created_at)}/`
  if (!isCheckpoint(first)) return { key: `${prefix}${folder}part-${range}${ending}`, ...numbers }
  const name = batch.length === 1 ? padNumber(numbers.first) : range
  return { key: `${prefix}checkpoints/${folder}checkpoint-${name}${ending}`, ...numbers }
}
