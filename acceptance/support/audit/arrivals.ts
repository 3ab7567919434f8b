import { hasItsPayload, leafOf, type Members } from './tree.ts'

// What has arrived in the sinks of several organizations, in little memory: the numbers that each sink got, and once per
// organization the id and the leaf of each number. A record is compared with them when it arrives, and forgotten.

const findingsMax = 20

export type Arrivals = ReturnType<typeof createArrivals>

/** What one sink of one organization got. */
type Sink = {
  /** The first and the last number; 0: nothing yet. */
  first: number
  last: number
  repeated: number
  checkpoints: Map<number, Members>
}

type Log = {
  /** By number: what the first sink that got it says of it. */
  ids: string[]
  leaves: Buffer
  sinks: Map<string, Sink>
}

const tooEarly = (where: string, size: number) =>
  `${where}: checkpoint ${size} came before its events`

export function createArrivals() {
  const logs = new Map<string, Log>()
  const findings: string[] = []
  const numbers = new Map<string, number>()
  let records = 0

  function report(finding: string) {
    if (findings.length < findingsMax) findings.push(finding)
  }

  /** An event is found by its id and by the id of its request. */
  function noteIdentity(log: Log, seq: number, record: Members, leaf: Buffer) {
    const id = String(record['event_id'])
    log.ids[seq] = id
    if (log.leaves.length < seq * 32) {
      log.leaves = Buffer.concat([log.leaves, Buffer.alloc(Math.max(32_768, log.leaves.length))])
    }
    leaf.copy(log.leaves, (seq - 1) * 32)
    const earlier = numbers.get(id)
    if (earlier !== undefined) report(`${id} has the numbers ${earlier} and ${seq}`)
    numbers.set(id, seq)
    const requestId = record['request_id']
    if (typeof requestId === 'string' && !numbers.has(requestId)) numbers.set(requestId, seq)
  }

  /** What every sink says of a number must be the same. */
  function compare(log: Log, seq: number, record: Members, where: string) {
    const leaf = leafOf(record)
    if (!hasItsPayload(record)) report(`${where}: ${seq} has another payload`)
    if (log.ids[seq] === undefined) return noteIdentity(log, seq, record, leaf)
    if (log.ids[seq] !== record['event_id']) report(`${where}: ${seq} is another event`)
    const known = log.leaves.subarray((seq - 1) * 32, seq * 32)
    if (!leaf.equals(known)) report(`${where}: ${seq} has another content`)
  }

  function takeCheckpoint(sink: Sink, size: number, record: Members, where: string) {
    const earlier = sink.checkpoints.get(size)
    if (earlier && earlier['note'] !== record['note']) report(`${where}: two checkpoints ${size}`)
    // One that comes before all events may be about those that are older than the sink.
    if (size > sink.last && sink.first > 0) report(tooEarly(where, size))
    sink.checkpoints.set(size, record)
  }

  function logOf(organizationId: string): Log {
    const log = logs.get(organizationId) ?? { ids: [], leaves: Buffer.alloc(0), sinks: new Map() }
    logs.set(organizationId, log)
    return log
  }

  return {
    findings,
    /** How many records have arrived, with those that arrived again. */
    records: () => records,
    /** The number of an event by its id, or by the id of its request. */
    numberOf: (id: string) => numbers.get(id),
    /** A record that no sink got because it is older than the sinks. */
    takeEarlier(record: Members) {
      compare(logOf(String(record['org_id'])), Number(record['org_seq']), record, 'the log')
    },
    take(type: string, record: Members) {
      records++
      const organizationId = String(record['org_id'])
      const where = `${organizationId}, ${type}`
      const log = logOf(organizationId)
      const sink = log.sinks.get(type) ?? {
        first: 0,
        last: 0,
        repeated: 0,
        checkpoints: new Map<number, Members>(),
      }
      log.sinks.set(type, sink)
      const seq = Number(record['org_seq'])
      if (record['event_type'] === 'checkpoint') return takeCheckpoint(sink, seq, record, where)
      compare(log, seq, record, where)
      if (sink.first === 0) {
        sink.first = seq
        const covering = [...sink.checkpoints.keys()].filter((size) => size >= seq)
        for (const size of covering) report(tooEarly(where, size))
      }
      if (seq <= sink.last) sink.repeated++
      else if (seq !== sink.last + 1 && sink.last > 0)
        report(`${where}: ${seq} came after ${sink.last}`)
      if (seq < sink.first) report(`${where}: ${seq} came, though the first was ${sink.first}`)
      sink.last = Math.max(sink.last, seq)
    },
    sinkOf: (organizationId: string, type: string) => logs.get(organizationId)?.sinks.get(type),
    /** The leaves of an organization from the first to the last number. */
    leavesOf(organizationId: string): Buffer {
      const { ids, leaves } = logOf(organizationId)
      return leaves.subarray(0, Math.max(0, ids.length - 1) * 32)
    },
    /** Numbers that are in no sink, up to the last one. */
    missingOf(organizationId: string): number[] {
      const { ids } = logOf(organizationId)
      return Array.from(ids.keys()).filter((seq) => seq > 0 && ids[seq] === undefined)
    },
  }
}
