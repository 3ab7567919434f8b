import { createClient } from '@gatehouse/contract/client'
import { readGatewayRollout } from '@gatehouse/contract/policy-gateway/gateway'
import {
  createGuardrail,
  deleteGuardrail,
  listGuardrails,
  updateGuardrail,
} from '@gatehouse/contract/policy-gateway/guardrails'
import { scriptedModeration } from '@gatehouse/tools/scripted-moderation'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import pg from 'pg'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { type Fault, startGuardrail } from './support/guardrails/guardrail-server.ts'
import { plainTextOf } from './support/guardrails/plain-text.ts'
import { findInDatabase } from './support/guardrails/search-database.ts'
import { writeModerationFile } from './support/moderation/scorer-double.ts'
import { ask, type Format, formats, hiddenPromptFor } from './support/streams/call.ts'
import { expectBrokenStream } from './support/streams/errors.ts'
import { catalogueOf } from './support/streams/models.ts'
import { textOf } from './support/streams/text.ts'
import { stateOf } from './support/streams/upstream.ts'
import { canary, useStack } from './support/use-stack.ts'

// Started processes ask guardrails on sockets: one of the operator, and those that an organization creates.

const [house, own] = [await startGuardrail(), await startGuardrail()]
const stack = useStack({
  paidUsd: '5000',
  models: ({ scripted }) =>
    catalogueOf(
      Object.fromEntries(formats.map((format) => [`by-${format}`, [{ url: scripted, format }]])),
    ),
  environment: {
    ...scriptedModeration,
    ...(await writeModerationFile({
      scorers: [{ name: 'scripted', adapter: 'scripted' }],
      guardrails: [
        { name: 'house', url: house.url, mode: 'enforcing', key: { env: 'HOUSE_SECRET' } },
      ],
    })),
    HOUSE_SECRET: house.secret,
    EXPORT_PRIVATE_TARGETS: own.host,
  },
})

let client: ReturnType<typeof createClient>
beforeAll(() => {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  client = createClient({ baseUrl, credential })
})

const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ')

/** It is one window: several at once would count as several failures in a row. */
const short = 'word0 word1 word2'

type Said = { asked?: string; answered?: string; isStreamed?: boolean }

/** A call of which nothing but the upstream can read what the answer will say. */
async function send(format: Format, { asked = 'Hello.', answered = words, ...options }: Said = {}) {
  const { base_url: baseUrl, project_key: credential } = stack().description
  const content = `${asked}\n${hiddenPromptFor({ text: answered })}`
  const body =
    format === 'responses' ? { input: content } : { messages: [{ role: 'user', content }] }
  const call = { format, model: `by-${format}`, body, isStreamed: false, ...options }
  const answer = await ask({ baseUrl, credential }, call)
  const text = call.isStreamed ? textOf(answer.text) : plainTextOf(format, answer.text)
  return { ...answer, said: text }
}

async function lastSent(): Promise<string> {
  const { lastRequests } = await stateOf(stack().description.upstream_url)
  return JSON.stringify(lastRequests.at(-1)?.body)
}

const requestsServed = async () => (await stateOf(stack().description.upstream_url)).requests

describe.each(formats)('%s', (format) => {
  describe.each([false, true])('streamed: %s', (isStreamed) => {
    test('what is allowed is answered as it is', async () => {
      const { status, said } = await send(format, { isStreamed })
      expect([status, said]).toEqual([200, words])
    })

    test('a request that is blocked is 400, and is sent to no model', async () => {
      const before = await requestsServed()
      const answer = await send(format, { isStreamed, asked: `This is forbidden, ${canary}.` })
      expect(answer.status).toBe(400)
      expect(answer.text).toContain('policy_blocked')
      expect(answer.text).toContain("'house'")
      expect(await requestsServed()).toBe(before)
    })

    test('a request is sent as it is rewritten', async () => {
      expect((await send(format, { isStreamed, asked: 'Call 😀 555-1234.' })).status).toBe(200)
      const sent = await lastSent()
      expect(sent).toContain('Call 😀 #.')
      expect(sent).not.toContain('555-1234')
    })

    test('nothing leaves of an answer from what is blocked on', async () => {
      const answered = `${words} forbidden ${words}`
      const answer = await send(format, { isStreamed, answered })
      expect(answer.text).toContain('policy_blocked')
      expect(answer.text).not.toContain('forbidden')
      if (isStreamed) expectBrokenStream(answer, format)
      else expect(answer.status).toBe(400)
    })

    test('an answer leaves as it is rewritten', async () => {
      const answered = `${words} 555-1234 😀 ${words} 555-9876 ${words}`
      const { status, said, text } = await send(format, { isStreamed, answered })
      expect([status, said]).toEqual([200, answered.replaceAll(/\d{3}-\d{4}/g, '#')])
      expect(text).not.toMatch(/555-/)
    })
  })
})

type Guardrail = { id: string; change(body: object): Promise<void> }

async function untilApplied() {
  await waitUntil(async () => (await client.call(readGatewayRollout, {})).is_applied)
}

/** A guardrail of the organization, until the test ends. */
async function createOwn(members: object): Promise<Guardrail> {
  const { guardrail } = await client.call(createGuardrail, {
    body: { name: 'Own', url: own.url, secret: own.secret, mode: 'enforcing', ...members },
  })
  const params = { guardrail_id: guardrail.id }
  onTestFinished(async () => {
    own.recover()
    await client.call(deleteGuardrail, { params, query: {} })
    await untilApplied()
  })
  await untilApplied()
  return {
    id: guardrail.id,
    async change(body) {
      await client.call(updateGuardrail, { params, body })
      await untilApplied()
    },
  }
}

/** About the longest text of a question, and what it has in common with another span about it. */
const spans = (...places: [number, number][]) => ({
  body: ({ texts }: { texts: { index: number; text: string }[] }) => {
    const { index } = texts.toSorted((one, other) => other.text.length - one.text.length)[0]!
    return JSON.stringify({
      action: 'rewrite',
      spans: places.map(([start, end]) => ({ index, start, end, replacement: canary })),
    })
  },
})

const failures: readonly (readonly [string, Fault])[] = [
  ['does not answer in time', 'hangs'],
  ['hangs up', 'hangs up'],
  ['answers 500', 500],
  ['redirects', 302],
  ['answers 400', 400],
  ['answers 401', 401],
  ['answers 403', 403],
  ['answers no JSON', { body: () => `<html>${canary}` }],
  ['answers with an unknown action', { body: () => `{"action":"${canary}"}` }],
  ['rewrites overlapping spans', spans([0, 4], [2, 6])],
  ['rewrites a span outside of the text', spans([0, 1_000_000])],
  ['rewrites an empty span', spans([3, 3])],
  ['answers too much', { body: () => `{"action":"allow","more":"${'x'.repeat(300_000)}"}` }],
]
/** Refused also with `on_error: allow`. */
const isMisconfigured = (way: Fault) => way === 400 || way === 401 || way === 403

describe.each(['refuse', 'allow'] as const)('a guardrail that fails, on_error %s', (on_error) => {
  test('requests are refused or sent as it declares', async () => {
    await createOwn({ on_error, deadline_ms: 200 })
    for (const [name, way] of failures) {
      own.fail(way, 'request')
      const isRefused = on_error === 'refuse' || isMisconfigured(way)
      const before = await requestsServed()
      const { status, text, said } = await send('messages')
      expect([name, status]).toEqual([name, isRefused ? 503 : 200])
      expect([name, await requestsServed()]).toEqual([name, before + (isRefused ? 0 : 1)])
      if (isRefused) expect(text).toContain('policy_evaluation_unavailable')
      else expect(said).toBe(words)
      expect(text).not.toContain(canary)
      // After some failures in a row it would be left alone.
      own.recover()
      expect((await send('messages')).status).toBe(200)
    }
  })

  test.each(formats)('%s: answers end or go on as it declares', async (format) => {
    await createOwn({ on_error, deadline_ms: 200 })
    for (const isStreamed of [false, true]) {
      for (const [name, way] of failures) {
        own.fail(way, 'response')
        const isRefused = on_error === 'refuse' || isMisconfigured(way)
        const answer = await send(format, { isStreamed, answered: short })
        expect(answer.text, name).not.toContain(canary)
        if (!isRefused) expect([name, answer.said]).toEqual([name, short])
        else {
          expect(answer.text, name).not.toContain('word0')
          expect(answer.text, name).toContain('did not decide about this answer')
          // The beginning of a stream, without a text, may have left.
          if (answer.status === 200) expectBrokenStream(answer, format)
          else expect([name, answer.status]).toEqual([name, 503])
        }
        own.recover()
        expect((await send(format)).status, name).toBe(200)
      }
    }
  })
})

test('a stream that has begun ends in the error of its format when its guardrail fails', async () => {
  await createOwn({ on_error: 'refuse' })
  let asked = 0
  const later = { body: () => (++asked > 2 ? 'no decision' : '{"action":"allow"}') }
  for (const format of formats) {
    asked = 0
    own.fail(later, 'response')
    const answer = await send(format, { isStreamed: true, answered: `${words} ${words}` })
    expectBrokenStream(answer, format)
    expect(answer.said).toContain('word0')
    expect(answer.said.length).toBeLessThan(words.length)
  }
})

const privateAddresses = `
  http://guard.example.com https://127.0.0.1 https://127.1 https://2130706433 https://0x7f.1
  https://017700000001 https://①②⑦.0.0.1 https://%31%32%37.0.0.1 https://0.0.0.0 https://[::1]
  https://[::ffff:127.0.0.1] https://[64:ff9b::7f00:1] https://169.254.169.254/latest/meta-data
  https://10.0.0.1 https://192.168.0.1:8443 https://localhost https://printer.local
  https://metadata.google.internal https://a:b@guard.example.com https://guard.example.com:22`
  .trim()
  .split(/\s+/)

test('addresses that tenants must not choose are neither saved nor asked', async () => {
  const body = { name: 'Inner', secret: own.secret, mode: 'enforcing' } as const
  for (const url of privateAddresses) {
    const created = client.call(createGuardrail, { body: { ...body, url } })
    await expect(created, url).rejects.toMatchObject({ status: 422 })
  }
  // However it was saved: the address of a server that listens, and that the operator has not listed.
  const guardrail = await createOwn({ on_error: 'allow' })
  const before = house.questions.length
  await withDatabase((database) =>
    database.query('update guardrail set url = $1 where id = $2', [house.url, guardrail.id]),
  )
  await guardrail.change({ deadline_ms: 500 })
  const { status, text } = await send('messages')
  expect(status).toBe(503)
  expect(text).not.toContain('127.0.0.1')
  const asked = house.questions.slice(before).map(({ direction }) => direction)
  expect([asked, house.wrongSignatures]).toEqual([['request'], 0])
})

async function withDatabase<Result>(use: (database: pg.Client) => Promise<Result>) {
  const database = new pg.Client(stack().database.url)
  await database.connect()
  try {
    return await use(database)
  } finally {
    await database.end()
  }
}

test('secrets and texts are nowhere', async () => {
  await createOwn({})
  await send('chat', { asked: `Call ${canary} at 555-1234.`, answered: `${canary} forbidden` })
  own.fail({ body: () => canary }, 'request')
  await send('chat', { asked: `Once more, ${canary}.` })
  expect([house.wrongSignatures, own.wrongSignatures]).toEqual([0, 0])
  const { data } = await client.call(listGuardrails, { query: {} })
  expect(data.map(({ secret }) => secret)).toEqual(['********'])
  const sought = [own.secret, house.secret, canary]
  // The logs are searched for the canary when the stack ends.
  expect(await withDatabase((database) => findInDatabase(database, sought))).toEqual([])
  const metrics = await Promise.all(
    stack().apis.map(async ({ metricsUrl }) => readText(metricsUrl)),
  )
  for (const text of [...metrics, await readText(`${stack().description.base_url}/health/ready`)]) {
    for (const secret of sought) expect(text).not.toContain(secret)
  }
})

const readText = async (url: string) => (await fetch(url)).text()
