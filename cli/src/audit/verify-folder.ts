import { UsageError } from '../usage-error.ts'
import { writeCanonical } from './canonical.ts'
import { checkDigests } from './digests.ts'
import { Fault } from './fault.ts'
import { type FileRange, indexFiles, inOrder, listFolder } from './folder-files.ts'
import type { Keys } from './keys.ts'
import type { AuditRecord, CheckpointRecord } from './read-records.ts'
import { type Chain, createChain, type Progress } from './verify-records.ts'

type Options = { keys: Keys; keysFile: string; organizationId: string | undefined }

export type FolderResult = {
  progress: Progress
  /** Records before the first checkpoint that can be continued. */
  before: { first: number; last: number } | null
  duplicates: number
  digests: number
}

/** Verifies what a sink has left in a folder. Memory holds one entry for each file, and the lines that are being compared. */
export async function verifyFolder(
  folder: string,
  { keys, keysFile, organizationId }: Options,
): Promise<FolderResult> {
  const { records: paths, digests } = await listFolder(folder, keysFile)
  const digestCount = await checkDigests(folder, digests)
  const ranges = await indexFiles(paths)
  const id = chosen(ranges, organizationId)
  const files = ranges.get(id) ?? []
  if (files.length === 0) {
    throw new Fault(
      { kind: 'file', seq: null },
      { file: folder, line: 0 },
      `with a record of the organization ${id} is not there`,
    )
  }
  const start = { organizationId: id, keys }
  return { ...(await verifyFiles(start, files, folder)), digests: digestCount }
}

function chosen(
  ranges: ReadonlyMap<string, FileRange[]>,
  organizationId: string | undefined,
): string {
  if (organizationId !== undefined) return organizationId
  const [first, ...others] = ranges.keys()
  if (first === undefined) throw new UsageError('The folder contains no audit records.')
  if (others.length === 0) return first
  const ids = [first, ...others].toSorted().slice(0, 5).join(', ')
  throw new UsageError(
    `The folder has records of ${others.length + 1} organizations: choose one with --organization (${ids}).`,
  )
}

type Start = { organizationId: string; keys: Keys }

async function verifyFiles(start: Start, files: readonly FileRange[], folder: string) {
  const before: { first: number; last: number } = { first: 0, last: 0 }
  let chain: Chain | undefined
  let duplicates = 0
  let last: AuditRecord | undefined
  for await (const record of inOrder(files, start.organizationId)) {
    if (last && isSamePlace(record, last)) {
      checkDuplicate(record, last)
      duplicates++
      continue
    }
    if (chain) add(chain, record)
    else if (record.kind === 'checkpoint') chain = startWith(record, start, before.last)
    else if (record.seq === 1) add((chain = createChain(start)), record)
    else notCovered(before, record)
    last = record
  }
  if (!chain || chain.progress().checkpoints === 0) {
    const what = 'with a checkpoint is not there: nothing can be verified'
    throw new Fault({ kind: 'file', seq: null }, { file: folder, line: 0 }, what)
  }
  return { progress: chain.progress(), before: before.first > 0 ? before : null, duplicates }
}

function startWith(record: CheckpointRecord, start: Start, lastBefore: number): Chain {
  if (lastBefore > 0 && lastBefore < record.seq) throw missing(lastBefore + 1, record)
  return createChain(start, record)
}

const isSamePlace = (one: AuditRecord, other: AuditRecord) =>
  one.kind === other.kind && one.seq === other.seq

/** A sink gets records at least once. A later copy may have lost its payload, which the leaf covers by its hash only. */
function checkDuplicate(record: AuditRecord, last: AuditRecord) {
  const isSame =
    record.kind === 'record' && last.kind === 'record'
      ? record.leaf.equals(last.leaf)
      : textOf(record) === textOf(last)
  if (isSame) return
  const { kind, seq, eventId, place } = record
  const what = `is there twice with different contents, also in ${last.place.file} line ${last.place.line}`
  throw new Fault({ kind, seq, eventId }, place, what)
}

const textOf = (record: AuditRecord) => writeCanonical((record as CheckpointRecord).members)

function add(chain: Chain, record: AuditRecord) {
  const size = chain.size()
  if (record.seq > size + (record.kind === 'record' ? 1 : 0)) throw missing(size + 1, record)
  if (record.kind === 'record') chain.addRecord(record)
  else chain.addCheckpoint(record)
}

/** Nothing says what the tree was before these records: they only have to be complete. */
function notCovered(before: { first: number; last: number }, record: AuditRecord) {
  if (before.first === 0) before.first = record.seq
  else if (record.seq !== before.last + 1) throw missing(before.last + 1, record)
  before.last = record.seq
}

function missing(seq: number, { kind, place, ...next }: AuditRecord): Fault {
  const name = kind === 'record' ? `record ${next.seq}` : `the checkpoint of size ${next.seq}`
  return new Fault({ kind: 'record', seq }, place, `is missing: ${name} comes next`)
}
