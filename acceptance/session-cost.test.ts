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

const freshMs = 5000

type Cost = { lookups: number; notes: number; lookupsMax: number }

/** Sends requests, ten at a time, and counts what they made the process ask. */
async function measure(count: number, secret: string): Promise<Cost> {
  asked.length = 0
  const startedAt = performance.now()
  const sendOne = () => call(baseUrl, listOrganizationModels, { headers: cookieOf(secret) })
  for (let sent = 0; sent < count; sent += 10) {
    const answers = await Promise.all(Array.from({ length: 10 }, sendOne))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  }
  // On a busy machine the requests take longer than a lookup holds.
  const lookupsMax = 1 + Math.floor((performance.now() - startedAt) / freshMs)
  await sleep(500) // the note that a session is in use is written after the answer
  const countOf = (first: string) => asked.filter((each) => each === first).length
  const [lookups, notes] = [countOf('select'), countOf('with')]
  expect(asked).toHaveLength(lookups + notes)
  return { lookups, notes, lookupsMax }
}

function expectOneLookup({ lookups, lookupsMax }: Cost) {
  expect(lookups).toBeGreaterThan(0)
  expect(lookups).toBeLessThanOrEqual(lookupsMax)
}

test('a session is looked up once in five seconds, and noted as in use once a minute', async () => {
  const { sessionId, secret } = await signInMember(stack(), database)
  const first = await measure(50, secret)
  expectOneLookup(first)
  expect(first.notes).toBe(0)
  await sleep(freshMs)
  expectOneLookup(await measure(50, secret))
  const twoMinutesAgo = `update session set last_seen_at = now() - interval '2 minutes' where id = $1`
  await database.query(twoMinutesAgo, [sessionId])
  await sleep(freshMs)
  const noted = await measure(50, secret)
  expectOneLookup(noted)
  expect(noted.notes).toBe(1)
})

test('a request that comes alone costs one lookup at most', async () => {
  const { secret } = await signInMember(stack(), database)
  asked.length = 0
  for (let count = 0; count < 3; count++) {
    await call(baseUrl, listOrganizationModels, { headers: cookieOf(secret) })
    await sleep(freshMs)
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
