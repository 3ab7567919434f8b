import { checkKeys, type Header, headerFault, readHeader } from './bundle.ts'
import { isObject, joinMembers, type JsonObject, writeCanonical } from './canonical.ts'
import { readCheckpoint } from './checkpoint.ts'
import { textFrom } from './encoding.ts'
import { BadLine, Fault } from './fault.ts'
import type { Keys } from './keys.ts'
import type { Line } from './lines.ts'
import {
  type AuditRecord,
  type CheckpointRecord,
  type EventRecord,
  objectIn,
  recordFrom,
  textsOf,
} from './read-records.ts'
import { type Chain, createChain, type Progress } from './verify-records.ts'

type Lines = AsyncGenerator<Line>
type Options = {
  /** How messages name the file. */
  file: string
  trusted: Keys | null
  organizationId: string | undefined
}

/** Verifies a bundle while it is read: its size does not matter. */
export async function verifyBundle(
  lines: Lines,
  options: Options,
): Promise<{ progress: Progress; keys: Keys }> {
  const header = await firstLine(lines, options)
  const { organizationId, keys, from } = header
  const reader = { lines, file: options.file, keys }
  const chain = from === 0 ? createChain({ organizationId, keys }) : await continued(reader, header)
  let isCovered = false
  for (let line; (line = await nextLine(lines));) {
    const wasComplete = isCovered && chain.size() === header.to
    isCovered = (await addLine(line, chain, reader)) === 'checkpoint'
    // Read all the same: a record that is there twice has a name.
    if (wasComplete || chain.size() > header.to) throw extraLine(line, reader)
  }
  checkEnd(chain, header, { isCovered, file: options.file })
  const progress = chain.progress()
  const unused = [...keys.keys()].find((id) => !progress.usedKeys.has(id))
  if (unused !== undefined)
    throw headerFault(options.file, `has a key ${unused}, which signed nothing in the bundle`)
  return { progress, keys }
}

type Reader = { lines: Lines; file: string; keys: Keys }

async function nextLine(lines: Lines): Promise<Line | undefined> {
  const next = await lines.next()
  return next.done ? undefined : next.value
}

async function firstLine(
  lines: Lines,
  { file, trusted, organizationId }: Options,
): Promise<Header> {
  const line = await nextLine(lines)
  if (!line) throw headerFault(file, 'is missing: the file is empty')
  try {
    const { text, object } = objectIn(line)
    const header = readHeader(text, object)
    if (trusted) checkKeys(header.keys, trusted)
    if (organizationId !== undefined && header.organizationId !== organizationId) {
      throw new BadLine(`names the organization ${header.organizationId}, not ${organizationId}`)
    }
    return header
  } catch (error) {
    throw error instanceof Error && !(error instanceof Fault)
      ? headerFault(file, error.message)
      : error
  }
}

/** A bundle that does not start with the first record has the checkpoint that it continues as its second line. */
async function continued(
  { lines, file }: Reader,
  { organizationId, keys, from, frontier }: Header,
) {
  const line = await nextLine(lines)
  const subject = { kind: 'checkpoint', seq: from } as const
  if (!line) throw new Fault(subject, { file, line: 2 }, 'is missing: the bundle ends before it')
  const record = readLine(line, file, subject)
  if (record.kind !== 'checkpoint' || record.seq !== from) {
    throw new Fault(subject, record.place, 'is missing: another record stands in its place')
  }
  const chain = createChain({ organizationId, keys }, record)
  const isSame = frontier.every((root, index) => chain.start()?.frontier[index]?.equals(root))
  if (!isSame) throw headerFault(file, `has another frontier than the checkpoint of size ${from}`)
  return chain
}

async function addLine(line: Line, chain: Chain, reader: Reader) {
  const size = chain.size()
  const kind = kindOf(textFrom(line.bytes) ?? line.bytes.toString('latin1'))
  const record = readLine(line, reader.file, { kind, seq: kind === 'record' ? size + 1 : size })
  if (record.kind === 'record') {
    // Whose record it is comes first: one of another organization has a number of that organization.
    if (record.seq === size + 1 || !chain.isOf(record)) chain.addRecord(record)
    else throw await outOfOrder(record, size, reader)
  } else if (record.seq !== size && chain.isOf(record)) {
    // One whose number was changed only looks as if it stood in the wrong place.
    readCheckpoint(record, reader.keys)
    throw record.seq > size ? await outOfOrder(record, size, reader) : tooLate(record, size)
  } else {
    chain.addCheckpoint(record)
  }
  return record.kind
}

const tooLate = ({ seq, eventId, place }: CheckpointRecord, size: number) =>
  new Fault(
    { kind: 'checkpoint', seq, eventId },
    place,
    `stands after record ${size}, not after record ${seq}`,
  )

/** What a line that cannot be read was meant to be: the beginnings differ. */
function kindOf(text: string): 'record' | 'checkpoint' {
  if (text.startsWith('{"created_at":')) return 'checkpoint'
  // Of a line that was cut off after a few bytes there is not more.
  if ('{"leaf":'.startsWith(text)) return 'record'
  return text.startsWith('{"leaf":') || text.includes('","record":{') ? 'record' : 'checkpoint'
}

/** Reads a line that must be written in its one form. `expected` is what should stand there. */
function readLine(
  line: Line,
  file: string,
  expected: { kind: 'record' | 'checkpoint'; seq: number },
): AuditRecord {
  const place = { file, line: line.number }
  try {
    if (!line.isComplete) throw new BadLine('is cut off')
    const { text, object } = objectIn(line)
    return 'leaf' in object ? wrapped(text, object, place) : plain(text, object, place)
  } catch (error) {
    if (!(error instanceof BadLine)) throw error
    throw new Fault({ ...expected, eventId: eventIdIn(line) }, place, error.message)
  }
}

function wrapped(
  text: string,
  { leaf, record: object }: JsonObject,
  place: { file: string; line: number },
) {
  if (!isObject(object)) throw new BadLine('has no record')
  const texts = textsOf(object)
  if (`{"leaf":${JSON.stringify(leaf)},"record":${joinMembers(texts)}}` !== text) {
    throw new BadLine('is not canonical JSON')
  }
  const record = recordFrom(object, place, texts)
  if (record.kind !== 'record') throw new BadLine('is a checkpoint that is written as a record')
  if (record.leaf.toString('hex') !== leaf)
    throw new BadLine('has been changed: it does not match its leaf')
  return record
}

function plain(text: string, object: JsonObject, place: { file: string; line: number }) {
  const record = recordFrom(object, place)
  if (record.kind !== 'checkpoint') throw new BadLine('has no leaf')
  if (writeCanonical(object) !== text) throw new BadLine('is not canonical JSON')
  return record
}

const eventIdIn = ({ bytes }: Line) =>
  /"event_id":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"/.exec(bytes.toString('latin1'))?.[1]

/** A record stands where another belongs: that one is missing, or comes later. */
async function outOfOrder(record: AuditRecord, size: number, reader: Reader): Promise<Fault> {
  const { seq, eventId, place } = record
  if (record.kind === 'record' && seq <= size) {
    return new Fault(
      { kind: 'record', seq, eventId },
      place,
      `is there twice, again after record ${size}`,
    )
  }
  const missing = { kind: 'record', seq: size + 1 } as const
  const name = record.kind === 'record' ? `record ${seq}` : `the checkpoint of size ${seq}`
  const found = await findLater(size + 1, reader)
  return found
    ? new Fault(
        { ...missing, eventId: found.eventId },
        found.place,
        `is not in its place: ${name} stands there, in line ${place.line}`,
      )
    : new Fault(missing, place, `is missing: ${name} stands in its place`)
}

async function findLater(seq: number, { lines, file }: Reader): Promise<EventRecord | undefined> {
  for (let line; (line = await nextLine(lines));) {
    if (!line.bytes.includes(`"org_seq":${seq},`)) continue
    const record = readableRecord(line, file)
    if (record?.kind === 'record' && record.seq === seq) return record
  }
  return undefined
}

function readableRecord(line: Line, file: string): AuditRecord | undefined {
  try {
    return readLine(line, file, { kind: 'record', seq: 0 })
  } catch {
    return undefined
  }
}

function extraLine({ number }: Line, { file }: Reader) {
  const place = { file, line: number }
  return new Fault(
    { kind: 'file', seq: null },
    place,
    'goes on after the last record that its first line announces',
  )
}

function checkEnd(
  chain: Chain,
  { to }: Header,
  { isCovered, file }: { isCovered: boolean; file: string },
) {
  const size = chain.size()
  const place = { file, line: 0 }
  if (size < to)
    throw new Fault(
      { kind: 'record', seq: size + 1 },
      place,
      `is missing: the bundle ends after record ${size}`,
    )
  if (!isCovered)
    throw new Fault({ kind: 'checkpoint', seq: to }, place, 'is missing: the bundle ends before it')
}
