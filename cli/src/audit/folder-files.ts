import { readdir } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'

import { type JsonObject, isObject } from './canonical.ts'
import { BadLine, Fault } from './fault.ts'
import { type Line, readLines } from './lines.ts'
import { addressOf, type AuditRecord, objectIn, recordFrom } from './read-records.ts'

/** Where the records of an organization lie in a file. */
export type FileRange = {
  path: string
  first: number
  last: number
  records: number
  isSorted: boolean
}

/** Files with records, and digests, as paths inside the folder. Other files are left alone. */
export async function listFolder(folder: string, keysFile: string | undefined) {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => /\.(jsonl|ndjson|json)(\.gz)?$/.test(path))
    // The keys may lie beside the records.
    .filter((path) => keysFile === undefined || resolve(path) !== resolve(keysFile))
    .toSorted()
  const isDigest = (path: string) => /(^|[/\\])digests[/\\].*\.json$/.test(relative(folder, path))
  return { records: paths.filter((path) => !isDigest(path)), digests: paths.filter(isDigest) }
}

/** A checkpoint comes directly after the record that completes its tree. */
const rankOf = (seq: number, kind: AuditRecord['kind']) => seq * 2 + (kind === 'checkpoint' ? 1 : 0)

/** Reads every file once and remembers only what lies in which, by organization. */
export async function indexFiles(paths: readonly string[]): Promise<Map<string, FileRange[]>> {
  const ranges = new Map<string, FileRange[]>()
  for (const path of paths) {
    const inFile = new Map<string, FileRange>()
    for await (const { line, object } of objectsOf(path)) {
      const { organizationId, seq, kind } = locating({ file: path, line }, () => addressOf(object))
      const rank = rankOf(seq, kind)
      const range = inFile.get(organizationId)
      if (range) extend(range, rank)
      else inFile.set(organizationId, { path, first: rank, last: rank, records: 1, isSorted: true })
    }
    for (const [id, range] of inFile) ranges.set(id, [...(ranges.get(id) ?? []), range])
  }
  return ranges
}

function extend(range: FileRange, rank: number) {
  range.isSorted &&= rank >= range.last
  range.first = Math.min(range.first, rank)
  range.last = Math.max(range.last, rank)
  range.records++
}

async function* objectsOf(path: string): AsyncGenerator<{ line: number; object: JsonObject }> {
  for await (const line of readLines(path)) {
    if (line.bytes.length === 0) continue
    const place = { file: path, line: line.number }
    const object = locating(place, () => unwrapped(line))
    if (!isTest(object)) yield { line: line.number, object }
  }
}

/** What an administrator sends to try a sink is an event of no log. */
const isTest = ({ event_type, org_seq }: JsonObject) => event_type === 'test' && org_seq === 0

function locating<Result>(place: { file: string; line: number }, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof BadLine)) throw error
    throw new Fault({ kind: 'record', seq: null }, place, error.message)
  }
}

/** A record as it was sent, or as exports of Splunk (`result` with `_raw`, `event`) and Elasticsearch (`_source`) wrap it. */
function unwrapped(line: Pick<Line, 'bytes'>): JsonObject {
  const { object } = objectIn(line)
  if ('event_type' in object) return withoutTimestamp(object)
  const inner = object['_source'] ?? object['event'] ?? object['result']
  if (!isObject(inner)) return object
  const raw = inner['_raw']
  if (typeof raw === 'string') return unwrapped({ bytes: Buffer.from(raw) })
  return withoutTimestamp(isObject(inner['event']) ? inner['event'] : inner)
}

/** Elasticsearch needs the time under a name of its own. */
function withoutTimestamp({ '@timestamp': timestamp, ...object }: JsonObject): JsonObject {
  if (timestamp !== undefined && timestamp !== object['created_at']) {
    throw new BadLine('has been changed: its @timestamp is not its created_at')
  }
  return object
}

type Cursor = { rest: AsyncIterator<AuditRecord>; record: AuditRecord }

const openFilesMax = 256

/** The records of an organization in their order, from files in any order. Files are opened when their first record is due. */
export async function* inOrder(
  files: readonly FileRange[],
  organizationId: string,
): AsyncGenerator<AuditRecord> {
  const waiting = files.toSorted((one, other) => other.first - one.first)
  const open: Cursor[] = []
  for (;;) {
    for (let next; (next = waiting.at(-1)) && next.first <= rankOfFirst(open); waiting.pop()) {
      if (open.length === openFilesMax) throw tooMany(next.path)
      const rest = recordsOf(next, organizationId)[Symbol.asyncIterator]()
      await advance(open, { rest })
    }
    const cursor = open.shift()
    if (!cursor) return
    yield cursor.record
    await advance(open, cursor)
  }
}

const rankOfFirst = ([cursor]: readonly Cursor[]) =>
  cursor ? rankOf(cursor.record.seq, cursor.record.kind) : Infinity

/** Puts the cursor where its next record belongs among the open ones. */
async function advance(open: Cursor[], { rest }: Pick<Cursor, 'rest'>) {
  const next = await rest.next()
  if (next.done) return
  const rank = rankOf(next.value.seq, next.value.kind)
  const index = open.findIndex(({ record }) => rankOf(record.seq, record.kind) > rank)
  open.splice(index < 0 ? open.length : index, 0, { rest, record: next.value })
}

const tooMany = (file: string) =>
  new Fault(
    { kind: 'file', seq: null },
    { file, line: 0 },
    `overlaps with ${openFilesMax} others. Sort the records by org_seq first`,
  )

const unsortedRecordsMax = 200_000

async function* recordsOf(range: FileRange, organizationId: string): AsyncGenerator<AuditRecord> {
  if (range.isSorted) return yield* recordsIn(range.path, organizationId)
  if (range.records > unsortedRecordsMax) {
    const what = `has more than ${unsortedRecordsMax} records that are not sorted. Sort them by org_seq first`
    throw new Fault({ kind: 'file', seq: null }, { file: range.path, line: 0 }, what)
  }
  const records: AuditRecord[] = []
  for await (const record of recordsIn(range.path, organizationId)) records.push(record)
  yield* records.toSorted((one, other) => rankOf(one.seq, one.kind) - rankOf(other.seq, other.kind))
}

async function* recordsIn(path: string, organizationId: string): AsyncGenerator<AuditRecord> {
  for await (const { line, object } of objectsOf(path)) {
    if (object['org_id'] !== organizationId) continue
    const place = { file: path, line }
    try {
      yield recordFrom(object, place)
    } catch (error) {
      if (!(error instanceof BadLine)) throw error
      const { seq, kind } = addressOf(object)
      const id = object['event_id']
      const eventId = typeof id === 'string' ? id : undefined
      throw new Fault({ kind, seq, eventId }, place, error.message)
    }
  }
}
