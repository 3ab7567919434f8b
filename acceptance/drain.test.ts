import { spawn } from 'node:child_process'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { createProject } from '@gatehouse/contract/project'
import { type ApiProcess, untilReady } from '@gatehouse/tools/service-process'
import { createTenants, type Stack, startStack } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { countHolds } from './support/credits/books.ts'
import { openAccount } from './support/credits/money.ts'
import { begin as beginCall, formats } from './support/streams/call.ts'
import { expectBrokenStream, expectRefusal } from './support/streams/errors.ts'
import { stateOf } from './support/streams/upstream.ts'

// After SIGTERM no request that has begun is lost, new ones are refused, and the exit code is 0. One stack serves all
// tests: each terminates its own API process. Callers that read nothing or send nothing do not delay the end.

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
}, 300_000)
afterAll(() => stack.stop(), 300_000)

let started = 0
async function startApi(environment: Record<string, string>) {
  const api = await stack.startApi(`drained-${++started}`, environment)
  await untilReady(api)
  const exit = new Promise<number | null>((resolve) => api.child.once('exit', resolve))
  return { ...api, exit, terminate: () => api.child.kill('SIGTERM') }
}

/** Long enough for a busy machine; how fast it happens is not checked. */
const eventually = { timeout: 60_000, interval: 20 }

/** Sends the headers and part of the body of a request; `finish` sends the rest. */
function begin({ baseUrl }: ApiProcess, name: string) {
  const body = JSON.stringify({ name })
  const request = httpRequest(`${baseUrl}${createProject.path}`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${stack.description.admin_key}`,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  })
  const status = new Promise<number>((resolve, reject) => {
    request.once('error', reject)
    request.once('response', (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0))
    })
  })
  const opened = new Promise<void>((resolve) => {
    request.once('socket', (socket) => socket.once('connect', () => resolve()))
  })
  request.write(body.slice(0, 5))
  return { opened, status, finish: () => request.end(body.slice(5)) }
}

async function isListening({ baseUrl }: ApiProcess): Promise<boolean> {
  return fetch(`${baseUrl}/health/live`).then(
    () => true,
    () => false,
  )
}

async function countInFlight({ metricsUrl }: ApiProcess): Promise<number> {
  const metrics = await (await fetch(metricsUrl)).text()
  return Number(/^gatehouse_requests_in_flight (\d+)$/m.exec(metrics)?.[1])
}

test('SIGTERM during 100 open requests loses none of them', async () => {
  const api = await startApi({ CONNECTIONS_MAX: '200', DRAIN_SECONDS: '120' })
  const requests = Array.from({ length: 100 }, (_, index) => begin(api, `open ${index}`))
  await Promise.all(requests.map(({ opened }) => opened))
  await expect.poll(() => countInFlight(api), eventually).toBe(100)
  api.terminate()
  await expect.poll(() => isListening(api), eventually).toBe(false)
  for (const { finish } of requests) {
    finish()
    await sleep(5)
  }
  const statuses = await Promise.all(requests.map(({ status }) => status))
  expect(statuses.filter((status) => status === 201)).toHaveLength(100)
  expect(await api.exit).toBe(0)
}, 300_000)

const seconds = { UNREADY_SECONDS: 2, DRAIN_SECONDS: 1 }

/** A baseline: after SIGTERM this process only waits as long as the drained one may, and exits. */
async function startBareProcess(waitSeconds: number) {
  const waitMs = 1000 * waitSeconds
  const code = `process.on('SIGTERM', () => setTimeout(process.exit, ${waitMs})); setInterval(() => {}, 1000); console.log()`
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  return async () => {
    const startedAt = performance.now()
    const exit = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    await exit
    return performance.now() - startedAt
  }
}

test('a process reports that it is not ready before it stops listening, and ends by its deadline', async () => {
  const environment = Object.entries(seconds).map(([name, value]) => [name, String(value)])
  const api = await startApi(Object.fromEntries(environment) as Record<string, string>)
  const endBareProcess = await startBareProcess(seconds.UNREADY_SECONDS + seconds.DRAIN_SECONDS)
  const stuck = begin(api, 'never finished')
  stuck.status.catch(() => undefined)
  await stuck.opened
  const startedAt = performance.now()
  api.terminate()
  const baseline = endBareProcess()
  const readStatus = async () => (await fetch(`${api.baseUrl}/health/ready`)).status
  await expect.poll(readStatus, eventually).toBe(503)
  expect((await fetch(`${api.baseUrl}/health/live`)).status).toBe(200)
  const detail = await fetch(api.metricsUrl.replace('/metrics', '/health/ready'))
  expect(await detail.json()).toEqual({ status: 'unavailable', reasons: ['draining'] })
  expect(await api.exit).toBe(0)
  const [tookMs, baselineMs] = [performance.now() - startedAt, await baseline]
  console.log(
    `ended after ${Math.round(tookMs)} ms, the bare process after ${Math.round(baselineMs)} ms`,
  )
  expect(tookMs / baselineMs).toBeLessThan(1.7)
}, 300_000)

/** Opens a connection that sends these bytes and reads nothing of the answers. */
async function openAndIgnore({ baseUrl }: ApiProcess, bytes: string) {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined).pause()
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()))
  return socket
}

test('a stream that ends in time is complete, one that does not is cut and charged for what was sent; nobody else delays the end', async () => {
  const drainSeconds = 3
  const api = await startApi({ DRAIN_SECONDS: String(drainSeconds) })
  const account = await openAccount(stack, 'Drained Ltd', 5_000_000)
  const target = { ...account.target, baseUrl: api.baseUrl }
  const request = { format: 'messages', model: 'claude-scripted' } as const
  const usage = { input: 100, output: 10 }
  const short = beginCall(target, { ...request, script: { tokens: 10, paceMs: 50, usage } })
  const long = beginCall(target, { ...request, script: { tokens: 3000, paceMs: 100 } })
  const unread = await openAndIgnore(
    api,
    'GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20),
  )
  const stalled = await openAndIgnore(
    api,
    `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${target.credential}\r\n` +
      'content-type: application/json\r\ncontent-length: 1000\r\n\r\n{',
  )
  await Promise.all([short.responseStarted, long.responseStarted])
  await expect.poll(() => countInFlight(api), eventually).toBeGreaterThanOrEqual(4)
  const endBareProcess = await startBareProcess(drainSeconds)
  const startedAt = performance.now()
  api.terminate()
  const baseline = endBareProcess()
  expect(await api.exit).toBe(0)
  const [tookMs, baselineMs] = [performance.now() - startedAt, await baseline]
  expect(tookMs / baselineMs).toBeLessThan(1.7)
  const [whole, cut] = await Promise.all([short.answer, long.answer])
  expect([whole.status, whole.isBroken]).toEqual([200, false])
  expect(whole.text).toContain('event: message_stop')
  expectBrokenStream(cut, 'messages')
  for (const socket of [unread, stalled]) socket.destroy()
  const entries = await account.calls()
  expect(new Set(entries.map(({ usage_source }) => usage_source))).toEqual(
    // Of the one that was cut, the time after its last word is charged too.
    new Set(['upstream', 'time-estimate']),
  )
  expect(entries).toHaveLength(2)
  for (const { kind, amount, output_tokens } of entries) {
    expect([kind, amount > 0, (output_tokens ?? 0) > 0]).toEqual(['usage', true, true])
  }
  expect(await countHolds(stack.database.url)).toBe(0)
}, 300_000)

test('what the end of the drain cuts is told so, in every format and from every format', async () => {
  const api = await startApi({ DRAIN_SECONDS: '1' })
  const [tenant] = await createTenants(stack.service, 1)
  const target = { baseUrl: api.baseUrl, credential: tenant?.project_key ?? '' }
  const script = { tokens: 3000, paceMs: 100 }
  const models = ['claude-scripted', 'responses-scripted', 'chat-scripted']
  const streams = formats.flatMap((format) =>
    models.map((model) => ({ format, call: beginCall(target, { format, model, script }) })),
  )
  const plain = formats.map((format) => ({
    format,
    call: beginCall(target, { format, model: 'chat-scripted', script, isStreamed: false }),
  }))
  await Promise.all(streams.map(({ call }) => call.responseStarted))
  await expect.poll(() => countInFlight(api), eventually).toBe(streams.length + plain.length)
  api.terminate()
  for (const { format, call } of streams) expectBrokenStream(await call.answer, format)
  const refusal = { status: 529, code: 'overloaded', messagesType: 'overloaded_error' }
  for (const { format, call } of plain) expectRefusal(await call.answer, format, refusal)
  expect(await api.exit).toBe(0)
  expect(await countHolds(stack.database.url)).toBe(0)
}, 300_000)

test.each([
  ['is waited for', '60', 3000, 'upstream'],
  ['is cut at the end of the drain and charged by its time', '2', 60_000, 'time-estimate'],
] as const)(
  'a plain call whose caller has hung up %s',
  async (_, DRAIN_SECONDS, headMs, source) => {
    const api = await startApi({ DRAIN_SECONDS })
    const account = await openAccount(stack, `Left during a drain of ${DRAIN_SECONDS}`, 5_000_000)
    const call = beginCall(
      { ...account.target, baseUrl: api.baseUrl },
      {
        format: 'messages',
        model: 'claude-scripted',
        script: { headMs, usage: { input: 1001, output: 301 } },
        isStreamed: false,
      },
    )
    const open = async () => (await stateOf(stack.description.upstream_url)).open
    await expect.poll(open, eventually).toBe(1)
    call.hangUp()
    api.terminate()
    expect(await api.exit).toBe(0)
    const [entry, ...others] = await account.calls()
    expect([entry?.kind, entry?.usage_source, others]).toEqual(['usage', source, []])
    expect(entry?.output_tokens).toBeGreaterThan(0)
    if (source === 'upstream') expect(entry?.amount).toBe(1001 * 3 + 301 * 15)
    expect(await countHolds(stack.database.url)).toBe(0)
    await expect.poll(open, eventually).toBe(0)
  },
  300_000,
)

test('a second SIGTERM ends the process at once', async () => {
  const api = await startApi({ UNREADY_SECONDS: '60' })
  api.terminate()
  const readStatus = async () => (await fetch(`${api.baseUrl}/health/ready`)).status
  await expect.poll(readStatus, eventually).toBe(503)
  api.terminate()
  expect(await api.exit).toBe(1)
}, 300_000)
