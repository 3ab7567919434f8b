import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { afterAll, expect, test } from 'vitest'

import { addTenant } from './support/limited-call.ts'
import {
  type Answer,
  ask,
  begin,
  beginRaw,
  foldedCall,
  type Format,
  formats,
  pathOf,
  type Target,
} from './support/streams/call.ts'
import { catalogueOf } from './support/streams/models.ts'
import { stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// Every attempt of an authenticated caller counts as one request, however it ends, and its answer reports what is left
// (docs/specification/limits.md#failed-attempts). Organizations are on the free tier: 60 requests a minute per key.

const upstream = await startScriptedUpstream()
afterAll(upstream.stop)
const stack = useStack({
  models: () =>
    catalogueOf(
      Object.fromEntries(
        formats.map((format) => [`by-${format}`, [{ url: upstream.url, format }]]),
      ),
    ),
})

const headers = ['requests', 'tokens'].flatMap((unit) =>
  ['limit', 'remaining', 'reset'].map((what) => `x-ratelimit-${what}-${unit}`),
)

function remainingIn(answer: Answer, name: string): number {
  const names = Object.keys(answer.headers).filter((header) => header.startsWith('x-ratelimit-'))
  expect(names.toSorted(), name).toEqual(headers.toSorted())
  expect(answer.headers['x-ratelimit-limit-requests']).toBe('60')
  return Number(answer.headers['x-ratelimit-remaining-requests'])
}

const tooLarge = Buffer.alloc(33 * 1024 * 1024, ' ')

type Attempt = (target: Target, format: Format) => Promise<Answer | undefined>

const raw =
  (payload: string | Buffer, further: Record<string, string> = {}): Attempt =>
  (target, format) =>
    beginRaw(target, { path: pathOf[format], payload, headers: further }).answer

const scripted =
  (script: object, isStreamed = true): Attempt =>
  (target, format) =>
    ask(target, { format, model: `by-${format}`, script, isStreamed })

/** Hangs up shortly after the upstream has been called. */
const hungUp =
  (script: object, isStreamed: boolean, isFolded = false): Attempt =>
  async (target, format) => {
    const body = isFolded ? foldedCall[format] : {}
    const call = begin(target, { format, model: `by-${format}`, script, isStreamed, body })
    await expect.poll(async () => (await stateOf(upstream.url)).open, { interval: 5 }).toBe(1)
    await sleep(100)
    call.hangUp()
    await expect.poll(async () => (await stateOf(upstream.url)).open).toBe(0)
    return undefined
  }

const cutOff: Attempt = async ({ baseUrl, credential }, format) => {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST ${pathOf[format]} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${credential}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 200\r\n\r\n{"model":',
  )
  await sleep(100)
  socket.destroy()
  await sleep(100)
  return undefined
}

const attempts: Record<string, [status: number | undefined, attempt: Attempt]> = {
  'a good call': [200, scripted({})],
  'a good plain call': [200, scripted({}, false)],
  'a body that is not JSON': [400, raw('{"model":')],
  'an empty body': [400, raw('')],
  'a body of another type': [400, raw('{}', { 'content-type': 'text/plain' })],
  'a body that violates the schema': [400, raw('{"model":7}')],
  'a body of 33 MiB': [413, raw(tooLarge)],
  'an unknown model': [404, (target, format) => ask(target, { format, model: 'unknown' })],
  'an upstream that refuses': [400, scripted({ error: { status: 400 } })],
  'an upstream that fails': [502, scripted({ error: { status: 500 } })],
  'an upstream that fails midway': [
    200,
    scripted({ tokens: 9, paceMs: 9, errorAfter: { pieces: 4 } }),
  ],
  'a hang-up before the first byte': [undefined, hungUp({ headMs: 20_000 }, true)],
  'a hang-up in mid-stream': [undefined, hungUp({ tokens: 500, paceMs: 20 }, true)],
  'a hang-up of a folded call': [undefined, hungUp({ tokens: 500, paceMs: 20 }, false, true)],
  'a hang-up of a plain call': [undefined, hungUp({ headMs: 500 }, false)],
  'a body that was cut off': [undefined, cutOff],
}

async function startTenant(name: string) {
  const tenant = await addTenant(stack(), name)
  const key = await tenant.addKey()
  const cannot = await tenant.addKey(tenant.projectId, ['credits.read'])
  const targetOf = (credential: string) => ({ baseUrl: stack().description.base_url, credential })
  return { target: targetOf(key.value), forbidden: targetOf(cannot.value) }
}

/** Attempts with a key that may not call models count as well. */
async function expectForbidden(target: Target, format: Format) {
  for (const left of [59, 58]) {
    const answer = await ask(target, { format, model: `by-${format}` })
    expect([answer.status, remainingIn(answer, '403')]).toEqual([403, left])
  }
  const refused = await beginRaw(target, { path: pathOf[format], payload: '{"model":' }).answer
  expect([refused.status, remainingIn(refused, '403')]).toEqual([403, 57])
}

test.each(formats)('%s: every attempt counts once and reports what is left', async (format) => {
  const { target, forbidden } = await startTenant(format)
  await expectForbidden(forbidden, format)
  const good = async () => {
    const answer = await ask(target, { format, model: `by-${format}` })
    expect(answer.status).toBe(200)
    return remainingIn(answer, 'a good call')
  }
  const wrong: string[] = []
  let left = await good()
  for (const [name, [status, attempt]] of Object.entries(attempts)) {
    const answer = await attempt(target, format)
    expect(answer?.status, name).toBe(status)
    const reported = answer ? remainingIn(answer, name) : left - 1
    const next = await good()
    const isRight = reported === left - 1 && next === left - 2
    if (!isRight) wrong.push(`${name}: ${left}, ${reported}, ${next}`)
    left = next
  }
  expect(wrong).toEqual([])
})
