import { setTimeout as sleep } from 'node:timers/promises'

import { listOrganizationModels } from '@gatehouse/contract/model'
import { startDatabaseTap } from '@gatehouse/tools/testing/database-tap'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { call } from './support/call.ts'
import { cookieOf, publicUrl, signInMember } from './support/sessions.ts'
import { useStack } from './support/use-stack.ts'

// What requests with a session make a process ask the database, counted on the wire. The endpoint itself asks nothing.

const stack = useStack({ models: null, environment: { PUBLIC_URL: publicUrl } })

let database: pg.Client
let tap: Awaited<ReturnType<typeof startDatabaseTap>>
let baseUrl: string
/** The statements about sessions, in the order in which the process has sent them. */
const asked: string[] = []
beforeAll(async () => {
  database = new pg.Client({ connectionString: stack().database.url })
  await database.connect()
  tap = await startDatabaseTap(stack().database.url, (text) => {
    if (/\bsession\b/.test(text)) asked.push(/^with|^select|^\w+/.exec(text.trim())?.[0] ?? text)
  })
  baseUrl = (await stack().startApi('tapped', { DATABASE_URL: tap.url })).baseUrl
})
afterAll(async () => {
  tap.stop()
  await database.end()
})

/** Sends requests of which some are under way at the same time; returns what they made the process ask. */
async function send(count: number, secret: string): Promise<string[]> {
  asked.length = 0
  const sendOne = () => call(baseUrl, listOrganizationModels, { headers: cookieOf(secret) })
  for (let sent = 0; sent < count; sent += 10) {
    const answers = await Promise.all(Array.from({ length: 10 }, sendOne))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  }
  await sleep(500) // the note that a session is in use is written after the answer
  return [...asked]
}

const longestMs = 5000

test('a session is looked up once in five seconds, and noted as in use once a minute', async () => {
  const { sessionId, secret } = await signInMember(stack(), database)
  // Ten at once share the first lookup, and nothing else is asked until it is five seconds old.
  let startedAt = performance.now()
  const first = await send(100, secret)
  expect(performance.now() - startedAt, 'the machine is too slow to tell').toBeLessThan(longestMs)
  expect(first).toEqual(['select'])
  await sleep(longestMs)
  expect(await send(10, secret)).toEqual(['select'])
  const twoMinutesAgo = `update session set last_seen_at = now() - interval '2 minutes' where id = $1`
  await database.query(twoMinutesAgo, [sessionId])
  await sleep(longestMs)
  startedAt = performance.now()
  const noted = await send(100, secret)
  expect(performance.now() - startedAt, 'the machine is too slow to tell').toBeLessThan(longestMs)
  expect(noted).toEqual(['select', 'with'])
})

test('a request that comes alone costs one lookup at most', async () => {
  const { secret } = await signInMember(stack(), database)
  asked.length = 0
  for (let count = 0; count < 3; count++) {
    await call(baseUrl, listOrganizationModels, { headers: cookieOf(secret) })
    await sleep(longestMs)
  }
  expect(asked).toEqual(['select', 'select', 'select'])
})

test('calls with a key ask nothing about sessions', async () => {
  const { admin_key: credential } = stack().description
  asked.length = 0
  for (let count = 0; count < 20; count++)
    await call(baseUrl, listOrganizationModels, { credential })
  await sleep(500)
  expect(asked).toEqual([])
})
