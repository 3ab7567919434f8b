import type { FileHandle } from 'node:fs/promises'

import { UsageError } from '../usage-error.ts'
import { writeHeader } from './bundle.ts'
import { isObject, type JsonObject, writeCanonical } from './canonical.ts'
import { checkpointMembers, frontierOf } from './checkpoint.ts'
import { isSize } from './encoding.ts'
import { readKeys } from './keys.ts'
import { writeRecord } from './read-records.ts'

type Query = { after?: number; limit: number; order?: 'asc' | 'desc' }

/** Where records and checkpoints come from. `after` is the number of a record, or a size. */
export type Source = {
  checkpoints: (query: Query) => Promise<readonly unknown[]>
  records: (query: Query) => Promise<readonly unknown[]>
  keys: () => Promise<string>
  say: (line: string) => void
}

type Range = { from?: number | undefined; to?: number | undefined }
type Files = { body: FileHandle; file: FileHandle }

const checkpointPage = 100
const recordPage = 1000

/** The first line has the keys that sign the others, so those are written into a file of their own first. */
export async function writeBundle(source: Source, range: Range, { body, file }: Files) {
  const to = await endOf(source, range.to)
  const from = range.from ?? 0
  if (from >= to)
    throw new UsageError(`--from ${from} is not before the last checkpoint, of size ${to}.`)
  const start = from === 0 ? null : await checkpointAt(source, from, '--from')
  const seen = { keys: new Set<unknown>(), organizationId: '' }
  for await (const checkpointOrRecord of linesOf(source, { from, to }, start)) {
    const { text, keyId, organizationId } = checkpointOrRecord
    if (keyId !== undefined) seen.keys.add(keyId)
    if (typeof organizationId === 'string') seen.organizationId = organizationId
    await body.appendFile(text)
  }
  const keys = readKeys(await source.keys())
  const used = new Map([...keys].filter(([id]) => seen.keys.has(id)))
  const frontier = start ? (frontierOf(start['frontier'], from) ?? []) : []
  await file.appendFile(
    `${writeHeader({ organizationId: seen.organizationId, from, to, frontier, keys: used })}\n`,
  )
  for await (const chunk of body.createReadStream({ start: 0, autoClose: false })) {
    await file.appendFile(chunk as Buffer)
  }
  await file.sync()
  return { from, to }
}

async function endOf(source: Source, given: number | undefined): Promise<number> {
  if (given !== undefined) return sizeOf(await checkpointAt(source, given, '--to'))
  const [newest] = await source.checkpoints({ limit: 1, order: 'desc' })
  if (newest === undefined)
    throw new UsageError(
      'There is no checkpoint yet. The first follows the first record by a minute.',
    )
  return sizeOf(checkpointFrom(newest))
}

async function checkpointAt(source: Source, size: number, flag: string): Promise<JsonObject> {
  const [found] = await source.checkpoints({ ...after(size - 1), limit: 1, order: 'asc' })
  const checkpoint = found === undefined ? undefined : checkpointFrom(found)
  if (checkpoint && sizeOf(checkpoint) === size) return checkpoint
  const next = checkpoint ? `; the next is ${sizeOf(checkpoint)}` : ''
  throw new UsageError(
    `${flag} takes the size of a checkpoint. There is none of size ${size}${next}.`,
  )
}

/** Without it, a list starts at its beginning. */
const after = (number: number) => (number > 0 ? { after: number } : {})

function checkpointFrom(item: unknown): JsonObject {
  if (!isObject(item)) throw new UsageError('The service sent a checkpoint that cannot be read.')
  return Object.fromEntries(checkpointMembers.map((name) => [name, item[name] ?? null]))
}

function sizeOf({ org_seq }: JsonObject): number {
  if (!isSize(org_seq)) throw new UsageError('The service sent a checkpoint without a size.')
  return org_seq
}

type Written = { text: string; keyId?: unknown; organizationId?: unknown }

/** A page of records at a time, and each checkpoint directly after the record that completes its tree. */
async function* linesOf(
  source: Source,
  { from, to }: { from: number; to: number },
  start: JsonObject | null,
): AsyncGenerator<Written> {
  if (start) yield writtenCheckpoint(start)
  const checkpoints = checkpointsAfter(source, from)
  let due = (await checkpoints.next()).value
  let last = from
  while (last < to) {
    const page = await source.records({ ...after(last), limit: recordPage })
    if (page.length === 0)
      throw new UsageError(
        `The service has no record ${last + 1}, although a checkpoint covers it.`,
      )
    const lines: string[] = []
    for (const item of page.slice(0, to - last)) {
      const { seq, text } = recordFrom(item)
      if (seq !== last + 1) throw await startLater(source, { from, last, seq })
      lines.push(text)
      last = seq
      if (!due || sizeOf(due) !== last) continue
      yield { text: lines.splice(0).join('') }
      yield writtenCheckpoint(due)
      due = (await checkpoints.next()).value
    }
    if (lines.length > 0) yield { text: lines.join('') }
    if (to - from > 10 * recordPage) source.say(`${last - from} of ${to - from} records`)
  }
}

async function* checkpointsAfter(
  source: Source,
  from: number,
): AsyncGenerator<JsonObject, undefined> {
  for (let last = from; ;) {
    const page = await source.checkpoints({ ...after(last), limit: checkpointPage, order: 'asc' })
    for (const item of page) yield checkpointFrom(item)
    const final = page.at(-1)
    if (final === undefined) return undefined
    last = sizeOf(checkpointFrom(final))
  }
}

const writtenCheckpoint = (checkpoint: JsonObject): Written => ({
  text: `${writeCanonical(checkpoint)}\n`,
  keyId: checkpoint['key_id'],
  organizationId: checkpoint['org_id'],
})

function recordFrom(item: unknown): { seq: number; text: string } {
  const { leaf, record } = isObject(item) ? item : {}
  if (!isObject(record) || typeof leaf !== 'string' || !isSize(record['org_seq'])) {
    throw new UsageError('The service sent a record that cannot be read.')
  }
  return {
    seq: record['org_seq'],
    text: `{"leaf":${JSON.stringify(leaf)},"record":${writeRecord(record)}}\n`,
  }
}

/** Old records are dropped after a while. What is left can be exported from the next checkpoint on. */
async function startLater(
  source: Source,
  { from, last, seq }: { from: number; last: number; seq: number },
) {
  if (last > from)
    return new UsageError(
      `The service has no record ${last + 1}: record ${seq} follows record ${last}.`,
    )
  const [next] = await source.checkpoints({ ...after(seq - 2), limit: 1, order: 'asc' })
  const advice =
    next === undefined
      ? 'No checkpoint follows it yet.'
      : `Use --from ${sizeOf(checkpointFrom(next))}.`
  return new UsageError(`Record ${seq} is the oldest that the service still has. ${advice}`)
}
