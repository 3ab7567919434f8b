import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

import { createProject, listProjects } from '@gatehouse/contract/project'
import { expect, onTestFinished, test } from 'vitest'

import { type Call, callService } from './call.ts'

const failure = (code: string) => ({ error: { code, message: 'No.' } })
const creation = { endpoint: createProject, input: { body: { name: 'x' } }, idempotencyKey: 'k1' }

/** A service that gives these answers in turn; null hangs up. */
async function call(what: Call, answers: readonly ([status: number, body: unknown] | null)[]) {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    const answer = answers[seen.push(request.headers) - 1]
    if (answer) response.writeHead(answer[0]).end(JSON.stringify(answer[1]))
    else request.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const waits: number[] = []
  const wait = (ms: number) => Promise.resolve(void waits.push(ms))
  const result = await callService({ baseUrl, credential: 'c' }, what, wait).catch((error) => error)
  return { result: result as unknown, seen, waits }
}

test('a change is repeated with the same key until it is answered', async () => {
  const answers = [null, [409, failure('idempotency_in_progress')], [201, { id: 'a' }]] as const
  const { result, seen, waits } = await call(creation, answers as never)
  expect(result).toEqual({ id: 'a' })
  expect(seen.map((headers) => headers['idempotency-key'])).toEqual(['k1', 'k1', 'k1'])
  // The client's own waits, which grow; a service that says how long to wait is obeyed.
  expect(waits.length).toBe(2)
  expect(waits[0]).toBeGreaterThanOrEqual(250)
  expect(waits[1]).toBeGreaterThanOrEqual(500)
})

test('a change without an answer ends with the key to ask again', async () => {
  const { result, seen } = await call(creation, [null, [503, failure('dependency_unavailable')]])
  expect(seen.length).toBe(4)
  expect(result).toMatchObject({ idempotencyKey: 'k1', message: 'The outcome is not known.' })
})

test('a change that a limit refused has not been made', async () => {
  const { result, seen } = await call(
    creation,
    Array(4).fill([429, failure('rate_limit_exceeded')]),
  )
  expect(seen.length).toBe(4)
  expect(result).toMatchObject({ name: 'CallFailed', code: 'rate_limit_exceeded' })
})

test('a page in place of an answer leaves the outcome open', async () => {
  const { result, seen } = await call(creation, [[200, undefined]])
  expect(seen.length).toBe(1)
  expect(result).toMatchObject({ idempotencyKey: 'k1' })
  expect((result as Error).cause).toMatchObject({
    message: expect.stringMatching(/ did not answer with JSON\.$/),
  })
})

test('a refusal is not repeated', async () => {
  const { result, seen } = await call(creation, [[409, failure('limit_reached')]])
  expect(seen.length).toBe(1)
  expect(result).toMatchObject({ code: 'limit_reached' })
})

test('a read is repeated, a change without a key is not', async () => {
  const read = await call({ endpoint: listProjects, input: {} }, [null, [200, { data: [] }]])
  expect(read.result).toEqual({ data: [] })
  const { endpoint, input } = creation
  expect((await call({ endpoint, input }, [null])).seen.length).toBe(1)
})
