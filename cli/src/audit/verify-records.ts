import { type Checkpoint, readCheckpoint } from './checkpoint.ts'
import { Fault } from './fault.ts'
import type { Keys } from './keys.ts'
import { createTree, rootOf, subtreeSizes, type Tree } from './merkle.ts'
import type { CheckpointRecord, EventRecord } from './read-records.ts'

/** What has been verified so far. */
export type Progress = {
  organizationId: string
  /** The records after this number are verified ... */
  from: number
  /** ... up to this one: the size of the last checkpoint. */
  to: number
  /** The last record that was read; those after `to` are not covered yet. */
  read: number
  checkpoints: number
  /** Times of the first and the last record that a checkpoint covers. */
  firstAt: string | null
  lastAt: string | null
  lastCheckpointAt: string | null
  erased: number
  usedKeys: ReadonlySet<number>
}

type Start = { organizationId: string; keys: Keys }

export type Chain = ReturnType<typeof createChain>

/**
 * Takes the records of an organization in their order and compares them with each checkpoint. It starts with the first record,
 * or continues the tree of a checkpoint, which is then the first thing that it is given.
 */
export function createChain({ organizationId, keys }: Start, first?: CheckpointRecord) {
  const start = first && readCheckpoint(first, keys)
  const tree = createTree(start?.size, start?.frontier)
  const usedKeys = new Set(start ? [start.keyId] : [])
  const pending = { lastAt: null as string | null, erased: 0 }
  let last: Checkpoint | null = start ?? null
  const seen = { from: tree.size(), checkpoints: start ? 1 : 0, firstAt: null as string | null }
  const covered = { to: tree.size(), lastAt: null as string | null, erased: 0 }
  if (first) checkOrganization(first, organizationId, first.seq)

  return {
    size: () => tree.size(),
    start: () => start,
    isOf: (record: EventRecord | CheckpointRecord) => record.organizationId === organizationId,
    /** The next record; its number has been compared with the size. */
    addRecord(record: EventRecord) {
      checkOrganization(record, organizationId, tree.size() + 1)
      if (record.seq !== tree.size() + 1)
        throw new Error('The records are not given in their order.')
      tree.append(record.leaf)
      seen.firstAt ??= record.createdAt
      pending.lastAt = record.createdAt
      if (record.isErased) pending.erased++
    },
    /** A checkpoint of the present size. */
    addCheckpoint(record: CheckpointRecord) {
      checkOrganization(record, organizationId, tree.size())
      const checkpoint = readCheckpoint(record, keys)
      checkOrder(record, checkpoint, last)
      compare(checkpoint, tree, { record, verified: last?.size ?? 0 })
      usedKeys.add(checkpoint.keyId)
      last = checkpoint
      seen.checkpoints++
      Object.assign(covered, pending, { to: checkpoint.size })
    },
    progress: (): Progress => ({
      organizationId,
      ...seen,
      ...covered,
      read: tree.size(),
      lastCheckpointAt: last?.time ?? null,
      usedKeys,
    }),
  }
}

/** `seq` is the number of the record that belongs there. */
function checkOrganization(
  record: EventRecord | CheckpointRecord,
  organizationId: string,
  seq: number,
) {
  const { kind, eventId, place } = record
  if (record.organizationId === organizationId) return
  const what = `belongs to the organization ${record.organizationId}, not to ${organizationId}`
  throw new Fault({ kind, seq, eventId }, place, what)
}

/** Checkpoints repeat the hash of the one before, so that none can be left out. */
function checkOrder(
  record: CheckpointRecord,
  { size, previous }: Checkpoint,
  last: Checkpoint | null,
) {
  const subject = { kind: 'checkpoint', seq: size, eventId: record.eventId } as const
  if (last && size <= last.size) throw new Fault(subject, record.place, 'is there twice')
  const isNext = last ? previous?.equals(last.hash) : previous === null
  if (isNext) return
  const before = last ? `the checkpoint of size ${last.size}` : 'the first record'
  const what = `does not follow ${before}: a checkpoint between them is missing or has been replaced`
  throw new Fault(subject, record.place, what)
}

/**
 * The tree says only that some record since the checkpoint before is not the one that was signed. The subtrees of a checkpoint,
 * which lead to its signed root, make the range smaller.
 */
function compare(
  checkpoint: Checkpoint,
  tree: Tree,
  { record, verified }: { record: CheckpointRecord; verified: number },
) {
  const frontier = tree.frontier()
  if (rootOf(frontier).equals(checkpoint.root)) return
  let first = 1
  for (const [index, size] of subtreeSizes(checkpoint.size).entries()) {
    const isEqual = checkpoint.frontier[index]?.equals(frontier[index] ?? Buffer.alloc(0))
    if (!isEqual) {
      const range = { seq: Math.max(first, verified + 1), last: first + size - 1 }
      const what = `is not the one that was signed: they do not match the checkpoint of size ${checkpoint.size}`
      throw new Fault({ kind: 'record', ...range }, record.place, what)
    }
    first += size
  }
}
