import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { createProjectApiKey, updateProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { stopProcess, untilReady } from '@gatehouse/tools/service-process'
import {
  createOrganization,
  createTenants,
  type NewOrganization,
  type Tenant,
} from '@gatehouse/tools/start-stack'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { useStack } from './support/use-stack.ts'

// Every call that passed the limiter leaves exactly one audit event, whatever came of it, also while the database is away
// and when the process is killed. What the limiter or the authentication refuses leaves none.

const stack = useStack({ processes: 1 })

let rich: Tenant[]
let poorKey: string
let readerKey: string
let limitedKey: string
let administrator: pg.Client

/** The ids of the requests that were answered, by what was expected of them. */
const answered = new Map<string, string>()

const addKey = async ({ admin_key, project_id }: NewOrganization, permissions?: string[]) => {
  const client = createClient({ baseUrl: stack().description.base_url, credential: admin_key })
  const body = { name: 'key', ...(permissions && { permissions: permissions as never }) }
  return (await client.call(createProjectApiKey, { params: { project_id }, body })).value
}

beforeAll(async () => {
  const { service, database } = stack()
  rich = await createTenants(service, 20)
  const poor = await createOrganization(service, 'Poor', '0')
  poorKey = await addKey(poor)
  const usual = await createOrganization(service, 'Usual')
  readerKey = await addKey(usual, ['credits.read'])
  limitedKey = await addKey(await createOrganization(service, 'Limited'))
  administrator = new pg.Client({
    connectionString: database.url.replace(database.name, 'postgres'),
  })
  await administrator.connect()
})
afterAll(() => administrator.end())

const bodyOf = (script: Script, stream = false) =>
  JSON.stringify({
    model: 'chat-scripted',
    max_completion_tokens: 50,
    stream,
    messages: [{ role: 'user', content: `Go.\n#script ${JSON.stringify(script)}` }],
  })

async function send(key: string, body: string, baseUrl = stack().description.base_url) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return fetch(`${baseUrl}/v1/chat/completions`, { method: 'POST', headers, body })
}

/** Sends a call and notes the id of its answer under what came of it. */
async function note(expected: string, key: string, body: string) {
  const answer = await send(key, body)
  await answer.text()
  expect(String(answer.status)).toBe(expected.slice(0, 3))
  answered.set(answer.headers.get('x-request-id') ?? '', expected)
}

let turn = 0
const anyKey = () => rich[turn++ % rich.length]?.project_key ?? ''

async function hangUp(key: string) {
  const answer = await send(key, bodyOf({ tokens: 50, paceMs: 50 }, true))
  const reader = answer.body?.getReader()
  await reader?.read()
  answered.set(answer.headers.get('x-request-id') ?? '', '200 cut')
  await reader?.cancel()
}

/** Sends the head of a request and a part of its body; returns what is answered. */
async function sendRaw(expected: string, key: string, headers: string) {
  const { hostname, port } = new URL(stack().description.base_url)
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\n${headers}\r\n\r\n{`,
  )
  const [head] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  const text = head.toString('latin1')
  expect(text.slice(9, 12)).toBe(expected.slice(0, 3))
  answered.set(/x-request-id: (\S+)/i.exec(text)?.[1] ?? '', expected)
}

const kinds: readonly (() => Promise<unknown>)[] = [
  () => note('200 served', anyKey(), bodyOf({ tokens: 3 })),
  () => note('200 streamed', anyKey(), bodyOf({ tokens: 3 }, true)),
  () => note('502 failed', anyKey(), bodyOf({ error: { status: 500 } })),
  () => hangUp(anyKey()),
  () => note('400 invalid', anyKey(), '{"model": 7}'),
  () => note('400 not JSON', anyKey(), '{'),
  () => note('402 poor', poorKey, bodyOf({ tokens: 3 })),
  () => note('403 forbidden', readerKey, bodyOf({ tokens: 3 })),
  () => note('404 no such model', anyKey(), bodyOf({}).replace('chat-scripted', 'none')),
  () => sendRaw('413 too large', anyKey(), `Content-Length: ${64 * 1024 * 1024}`),
  () => note('401 unknown key', `gate_prj_${'a'.repeat(40)}`, bodyOf({ tokens: 3 })),
]
const withoutEvent = (expected: string) => /^401|^429/.test(expected)

/** How many events each of the noted calls has, where that is not what it should have. */
async function findWrong() {
  const client = new pg.Client({ connectionString: stack().database.url })
  await client.connect()
  const { rows } = await client.query<{ id: string; outcome: string; count: number }>(
    `select header->>'request_id' as id, max(header->>'outcome') as outcome, count(*)::int as count
     from event where kind = 'enforcement' group by 1`,
  )
  await client.end()
  const found = new Map(rows.map(({ id, count }) => [id, count]))
  return {
    twice: rows.filter(({ count }) => count > 1),
    wrong: [...answered].filter(
      ([id, expected]) => (found.get(id) ?? 0) !== (withoutEvent(expected) ? 0 : 1),
    ),
    outcomes: new Map(rows.map(({ id, outcome }) => [id, outcome])),
  }
}

const right = { twice: [], wrong: [] }
const eventually = { timeout: 30_000, interval: 200 }

test('every kind of call that passed the limiter has one event', async () => {
  const slow = sendRaw('408 too slow', anyKey(), 'Content-Length: 100')
  for (let round = 0; round < 10; round++) await Promise.all(kinds.map((kind) => kind()))
  await slow
  await expect.poll(findWrong, eventually).toMatchObject(right)
  const { outcomes } = await findWrong()
  const seen = new Set([...answered].map(([id, expected]) => `${expected}: ${outcomes.get(id)}`))
  expect([...seen].toSorted()).toEqual([
    '200 cut: cut',
    '200 served: completed',
    '200 streamed: completed',
    '400 invalid: refused',
    '400 not JSON: refused',
    '401 unknown key: undefined',
    '402 poor: refused',
    '403 forbidden: refused',
    '404 no such model: refused',
    '408 too slow: refused',
    '413 too large: refused',
    '502 failed: failed',
  ])
})

test('a call that can never fit its limits has passed the limiter, and has one', async () => {
  const { base_url: baseUrl } = stack().description
  const { admin_key, project_id } = await createOrganization(stack().service, 'Tiny')
  const client = createClient({ baseUrl, credential: admin_key })
  const params = { project_id }
  const key = await client.call(createProjectApiKey, { params, body: { name: 'key' } })
  const limits = { tokens_per_minute: 10 }
  await client.call(updateProjectApiKey, {
    params: { ...params, key_id: key.id },
    body: { limits },
  })
  await note('400 too many tokens', key.value, bodyOf({ tokens: 3 }))
  await expect.poll(findWrong, eventually).toMatchObject(right)
})

test('a call that the limiter refuses has none', async () => {
  let status = 0
  for (let sent = 0; sent < 200 && status !== 429; sent++) {
    const answer = await send(limitedKey, '{')
    status = answer.status
    answered.set(answer.headers.get('x-request-id') ?? '', `${status} limited`)
    await answer.text()
  }
  expect(status).toBe(429)
  await expect.poll(findWrong, eventually).toMatchObject(right)
})

test('while the database is away, events wait on disk; none is lost and none is there twice', async () => {
  const { database } = stack()
  for (const { project_key } of rich) await note('400 not JSON', project_key, '{')
  await administrator.query(`alter database ${database.name} with allow_connections false`)
  await administrator.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1',
    [database.name],
  )
  const backAt = performance.now() + 10_000
  let sent = 0
  while (performance.now() < backAt || sent <= 8) {
    await Promise.all([
      note('400 not JSON', anyKey(), '{'),
      note('503 no ledger', anyKey(), bodyOf({ tokens: 3 })),
    ])
    sent += 2
    await sleep(100)
  }
  await administrator.query(`alter database ${database.name} with allow_connections true`)
  await expect.poll(findWrong, eventually).toMatchObject(right)
})

test('a process that is killed has an event of every call that it answered', async () => {
  const { apis, startApi } = stack()
  const [api] = apis
  if (!api) throw new Error('no process')
  let isKilled = false
  const keepCalling = async () => {
    while (!isKilled) {
      await note('400 not JSON', anyKey(), '{').catch(() => undefined)
      await note('200 served', anyKey(), bodyOf({ tokens: 2 })).catch(() => undefined)
    }
  }
  const callers = Array.from({ length: 8 }, keepCalling)
  const before = answered.size
  await expect.poll(() => answered.size - before, { timeout: 60_000 }).toBeGreaterThan(50)
  await stopProcess(api.child, 'SIGKILL')
  isKilled = true
  await Promise.all(callers)
  await untilReady(await startApi('api-again'))
  await expect.poll(findWrong, eventually).toMatchObject(right)
})
