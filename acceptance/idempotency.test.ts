import { randomUUID } from 'node:crypto'

import { createAdminApiKey } from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { createProject, listProjects } from '@gatehouse/contract/project'
import { stopProcess } from '@gatehouse/tools/service-process'
import { expect, test } from 'vitest'

import { type Answer, call, codeOf } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// One key has one effect and one answer: under concurrent duplicates, over two processes, and when one of them is
// killed midway.

const stack = useStack({ models: null, processes: 2 })
/** Only detects a hang; a killed process holds its slots for a minute. */
const answeredMaxMs = 180_000

/** Repeats a call until its answer is final, as a careful client does. */
async function sendUntilAnswered(endpoint: Endpoint, key: string, body: object, first: number) {
  const { base_urls, admin_key: credential } = stack().description
  for (let attempt = 0, end = Date.now() + answeredMaxMs; Date.now() < end; attempt++) {
    const baseUrl = base_urls[(first + attempt) % base_urls.length] ?? ''
    const headers = { 'idempotency-key': key }
    const answer = await call(baseUrl, endpoint, { credential, body, headers }).catch(
      undefinedIfBroken,
    )
    // A killed process holds its slots for a minute: calls may have to wait for a free one.
    const isFinal = answer && answer.status < 429 && codeOf(answer) !== 'idempotency_in_progress'
    if (isFinal) return answer
    await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 80))
  }
  throw new Error('There was no final answer.')
}

/** A killed process breaks its connections; the client then calls the other one. */
function undefinedIfBroken(error: unknown): undefined {
  if (error instanceof TypeError) return undefined
  throw error
}

async function sendDuplicates(endpoint: Endpoint, body: object, count: number): Promise<Answer[]> {
  const key = randomUUID()
  return Promise.all(
    Array.from({ length: count }, (_, index) => sendUntilAnswered(endpoint, key, body, index)),
  )
}

async function countProjects(prefix: string): Promise<number> {
  const { base_urls, admin_key: credential } = stack().description
  let count = 0
  for (let after: string | undefined; ;) {
    const query = { limit: '100', ...(after && { after }) }
    const { json } = await call(base_urls[0] ?? '', listProjects, { credential, query })
    const page = listProjects.response.parse(json)
    count += page.data.filter(({ name }) => name.startsWith(prefix)).length
    if (!page.has_more || !page.last_id) return count
    after = page.last_id
  }
}

test('200 keys x 20 concurrent duplicates over 2 processes: 200 effects, identical replays', async () => {
  const keys = 200
  let replays = 0
  for (let start = 0; start < keys; start += 10) {
    const groups = Array.from({ length: 10 }, (_, index) =>
      sendDuplicates(createProject, { name: `once ${start + index}` }, 20),
    )
    for (const answers of await Promise.all(groups)) {
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
      expect(answers[0]?.status).toBe(201)
      const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true'
      expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
      replays += answers.filter(isReplay).length
    }
  }
  expect(await countProjects('once')).toBe(keys)
  expect(replays).toBe(keys * 19)
}, 300_000)

test('a replayed key creation returns the same secret, and another body is refused', async () => {
  const body = { name: 'replayed', permissions: [] }
  const answers = await sendDuplicates(createAdminApiKey, body, 20)
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  const { base_url, admin_key: credential } = stack().description
  const headers = { 'idempotency-key': 'used for one body'.replaceAll(' ', '-') }
  await call(base_url, createProject, { credential, headers, body: { name: 'first' } })
  const other = await call(base_url, createProject, {
    credential,
    headers,
    body: { name: 'second' },
  })
  expect([other.status, codeOf(other)]).toEqual([409, 'idempotency_key_reused'])
  expect(other.headers.get('x-should-retry')).toBe('false')
})

test('a refusal is replayed too, and has no effect', async () => {
  const { base_url, admin_key: credential } = stack().description
  const body = { name: 'too many', permissions: [] }
  let refused: Answer | undefined
  for (let index = 0; index < 60 && refused?.status !== 409; index++) {
    const headers = { 'idempotency-key': `many-${index}` }
    refused = await call(base_url, createAdminApiKey, { credential, headers, body })
    const again = await call(base_url, createAdminApiKey, { credential, headers, body })
    expect([again.status, again.text]).toEqual([refused.status, refused.text])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    if (again.status === 409) expect(again.headers.get('x-should-retry')).toBe('false')
  }
  expect(refused && codeOf(refused)).toBe('limit_reached')
})

test('when a process is killed midway, every key still has exactly one effect', async () => {
  const [, second] = stack().apis
  if (!second) throw new Error('two processes are needed')
  const keys = 60
  const running = Array.from({ length: keys }, (_, index) =>
    sendDuplicates(createProject, { name: `survives ${index}` }, 4),
  )
  await new Promise((resolve) => setTimeout(resolve, 150))
  await stopProcess(second.child, 'SIGKILL')
  for (const answers of await Promise.all(running)) {
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  }
  expect(await countProjects('survives')).toBe(keys)
})
