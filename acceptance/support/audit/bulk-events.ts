import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

// Events in such numbers that calls of the API would take too long. They are written to the table as the service does it,
// by code that shares nothing with it: an event whose transaction has committed is acknowledged.

const batchSize = 100

type Row = {
  id: string
  day: string
  shard: number
  organizationId: string
  at: Date
  header: string
  payload: Buffer
  salt: Buffer
  hash: Buffer
}

/** A UUID of version 7. */
function createEventId(at: Date): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(at.getTime(), 0, 6)
  bytes[6] = 0x70 | (bytes[6]! & 0x0f)
  bytes[8] = 0x80 | (bytes[8]! & 0x3f)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

const shardOf = (organizationId: string) => {
  const digest = createHash('sha256').update(organizationId).digest()
  return (digest[0]! * 256 + digest[1]!) % 16
}

function createRow(organizationId: string, number: number): Row {
  const at = new Date()
  const header = {
    phase: 'call',
    request_id: null,
    actor: `bulk-${number % 7}`,
    model: null,
    policy_target: number % 3 === 0 ? 'Überweisung "€"' : 'messages',
    outcome: 'refused',
    status: 400,
    code: 'invalid_request',
    policy_matches: number % 5 === 0 ? ['b', 'a'] : [],
  }
  const payload = Buffer.from(JSON.stringify({ usage: { credits: 0, number } }))
  const salt = randomBytes(16)
  return {
    id: createEventId(at),
    day: at.toISOString().slice(0, 10),
    shard: shardOf(organizationId),
    organizationId,
    at,
    header: JSON.stringify(header),
    payload,
    salt,
    hash: createHash('sha256').update(salt).update(payload).digest(),
  }
}

const insertStatement = `
  insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
  select day, id, shard, organization_id, 'enforcement', at, header, payload, salt, hash
  from unnest($1::date[], $2::uuid[], $3::smallint[], $4::text[], $5::timestamptz[], $6::jsonb[], $7::bytea[], $8::bytea[],
    $9::bytea[]) as given (day, id, shard, organization_id, at, header, payload, salt, hash)
  on conflict do nothing`

async function insert(client: pg.Client, rows: readonly Row[]) {
  const column = (name: keyof Row) => rows.map((row) => row[name])
  await client.query(insertStatement, [
    column('day'),
    column('id'),
    column('shard'),
    column('organizationId'),
    column('at'),
    column('header'),
    column('payload'),
    column('salt'),
    column('hash'),
  ])
}

type Bulk = {
  url: string
  organizations: readonly string[]
  events: number
  random: (below: number) => number
  /** How many events may have been written by now. */
  allowed: () => number
  onAcknowledged: (ids: readonly string[]) => void
}

/** Writes events with several connections; whatever fails is repeated until it commits. */
export async function writeBulk(bulk: Bulk, connections: number) {
  let begun = 0
  const write = async () => {
    let client: pg.Client | undefined
    while (begun < bulk.events) {
      if (begun >= bulk.allowed()) {
        await sleep(20)
        continue
      }
      const size = Math.min(batchSize, bulk.events - begun)
      const rows = Array.from({ length: size }, (_, at) =>
        createRow(bulk.organizations[bulk.random(bulk.organizations.length)]!, begun + at),
      )
      begun += size
      client = await commit(client, rows, bulk)
      bulk.onAcknowledged(rows.map(({ id }) => id))
    }
    await client?.end()
  }
  await Promise.all(Array.from({ length: connections }, write))
}

/** Returns the connection for the next transaction. */
async function commit(
  connected: pg.Client | undefined,
  rows: readonly Row[],
  { url, random }: Bulk,
): Promise<pg.Client> {
  for (let client = connected; ; client = undefined) {
    try {
      client ??= await connect(url)
      await client.query('begin')
      await insert(client, rows.slice(0, rows.length / 2))
      // Transactions overtake one another: the order of their sequence numbers is not that of their commits.
      if (random(4) === 0) await sleep(random(100))
      await insert(client, rows.slice(rows.length / 2))
      await client.query('commit')
      return client
    } catch {
      await client?.end().catch(() => undefined)
      await sleep(100)
    }
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 2000,
    query_timeout: 20_000,
  })
  client.on('error', () => undefined)
  await client.connect()
  return client
}
