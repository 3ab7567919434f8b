import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  pausePolicy,
  Policy,
  publishPolicy,
  resumePolicy,
  retrievePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { stopProcess } from '@gatehouse/tools/service-process'
import pg from 'pg'
import { expect, test } from 'vitest'

import { type Answer, call, codeOf } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// Many clients edit one policy through two processes as fast as they can. An edit of an old revision is refused with
// the current one, and no accepted edit is lost.

const clients = 16
const seconds = 20

const stack = useStack({ models: null, processes: 2 })

type Change = { action: string; policy: Policy }

/** What all clients together recorded. */
type Log = { accepted: Change[]; acceptedBy: Map<number, number>; refused: Map<string, number> }

type Step = { action: string; endpoint: Endpoint; fields: object }

/** Mostly edits. Some change the rule as well, so that there is something to publish. */
function nextStep(client: number, count: number): Step {
  const turn = (count + client) % 20
  if (turn === 5) return { action: 'published', endpoint: publishPolicy, fields: {} }
  if (turn === 10) return { action: 'paused', endpoint: pausePolicy, fields: {} }
  if (turn === 15) return { action: 'resumed', endpoint: resumePolicy, fields: {} }
  const text = `edit ${count} of client ${client}`
  const fields = { description: text, ...(turn % 4 === 0 && { rule: text }) }
  return { action: 'updated', endpoint: updatePolicy, fields }
}

function send(client: number, endpoint: Endpoint, policy_id: string, body?: object) {
  const { base_urls, admin_key: credential } = stack().description
  const baseUrl = base_urls[client % base_urls.length] ?? ''
  return call(baseUrl, endpoint, { credential, params: { policy_id }, body })
}

/** One client: sends a step until it is accepted or the policy's state forbids it, then the next. */
async function edit(client: number, id: string, log: Log) {
  let revision = 1
  for (let count = 0, end = Date.now() + seconds * 1000; Date.now() < end;) {
    const { action, endpoint, fields } = nextStep(client, count)
    const answer = await send(client, endpoint, id, { ...fields, revision })
    if (answer.status === 200) {
      const policy = expectAccepted(answer, fields, revision)
      log.accepted.push({ action, policy })
      increase(log.acceptedBy, client)
      revision = policy.revision
    } else {
      increase(log.refused, codeOf(answer) ?? '')
      expectRefused(answer)
    }
    if (codeOf(answer) === 'revision_conflict') revision = expectNewer(answer, revision)
    else count++
  }
}

function increase<Key>(counts: Map<Key, number>, key: Key) {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

function expectAccepted({ json }: Answer, fields: object, revision: number): Policy {
  const policy = Policy.parse(json)
  const { description, draft } = policy
  const stored = { description, rule: draft.rule, revision: policy.revision }
  expect(stored).toMatchObject({ ...fields, revision: revision + 1 })
  return policy
}

const refusals = [
  'revision_conflict',
  'no_unpublished_changes',
  'policy_not_active',
  'policy_not_paused',
]

/** The only refusals are those that the rules for policies require. */
function expectRefused(answer: Answer) {
  expect(answer.status, answer.text).toBe(409)
  expect(refusals).toContain(codeOf(answer))
  expect(answer.headers.get('x-should-retry')).toBe('false')
}

/** Reads the current revision from the message. */
function expectNewer({ json }: Answer, revision: number): number {
  const { error } = json as { error: { message: string; param: string } }
  const current = Number(/\brevision (\d+)\./.exec(error.message)?.[1])
  expect(error.param).toBe('body.revision')
  expect(current).toBeGreaterThan(revision)
  return current
}

async function query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) {
  const client = new pg.Client({ connectionString: stack().database.url })
  await client.connect()
  try {
    return (await client.query<Row>(text, values)).rows
  } finally {
    await client.end()
  }
}

async function countDeadlocks(): Promise<number> {
  const rows = await query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  return Number(rows[0]?.deadlocks)
}

type Event = { revision: string; action: string; payload: Buffer }

/** There is one event for each accepted change, and each starts from the state that the previous one left. */
async function expectChain(created: Policy, changes: readonly Change[]) {
  const events = await query<Event>(
    `select header->>'revision' as revision, header->>'action' as action, payload from event
      where kind = 'revision' and header->>'object_id' = $1
      order by (header->>'revision')::int, seq`,
    [created.id],
  )
  expect(events).toHaveLength(changes.length + 1)
  let before: Policy | null = null
  for (const [index, event] of events.entries()) {
    const { action, policy } = changes[index - 1] ?? { action: 'created', policy: created }
    expect(event).toMatchObject({ revision: String(index + 1), action })
    expect(JSON.parse(event.payload.toString())).toEqual({ before, after: policy })
    before = policy
  }
}

function report({ accepted, acceptedBy, refused }: Log) {
  const actions = new Map<string, number>()
  for (const { action } of accepted) increase(actions, action)
  const each = Array.from({ length: clients }, (_, client) => acceptedBy.get(client) ?? 0)
  const range = `${Math.min(...each)} to ${Math.max(...each)} per client`
  const counts = { accepted: Object.fromEntries(actions), refused: Object.fromEntries(refused) }
  console.log(`${accepted.length} changes in ${seconds} s, ${range}`, counts)
  expect([...actions.keys()].toSorted()).toEqual(['paused', 'published', 'resumed', 'updated'])
  expect(refused.get('revision_conflict')).toBeGreaterThan(0)
}

test(`${clients} clients on 2 processes edit one policy for ${seconds} s: no edit is lost or applied twice`, async () => {
  const { base_url, admin_key: credential } = stack().description
  const deadlocks = await countDeadlocks()
  const body = { name: 'Wanted by all', rule: 'Be kind.' }
  const created = Policy.parse((await call(base_url, createPolicy, { credential, body })).json)
  const log: Log = { accepted: [], acceptedBy: new Map(), refused: new Map() }
  await Promise.all(Array.from({ length: clients }, (_, client) => edit(client, created.id, log)))
  report(log)

  const changes = log.accepted.toSorted((one, other) => one.policy.revision - other.policy.revision)
  const revisions = changes.map(({ policy }) => policy.revision)
  expect(revisions).toEqual(Array.from(changes, (_, index) => index + 2))
  await expectChain(created, changes)
  for (const client of [0, 1]) {
    const { json } = await send(client, retrievePolicy, created.id)
    expect(json).toEqual(changes.at(-1)?.policy)
  }
  // A session reports deadlocks with a delay, but at the latest when it ends.
  await Promise.all(stack().apis.map(({ child }) => stopProcess(child)))
  expect(await countDeadlocks()).toBe(deadlocks)
})
