import { setTimeout as sleep } from 'node:timers/promises'

import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import pg from 'pg'
import { expect, test } from 'vitest'

import { startScorerDouble, writeModerationFile } from './support/moderation/scorer-double.ts'
import { eventually } from './support/policies/enforcing.ts'
import {
  beginRaw,
  type Format,
  formats,
  hiddenPromptFor,
  pathOf,
  type Target,
} from './support/streams/call.ts'
import { textOf } from './support/streams/text.ts'
import { useStack } from './support/use-stack.ts'

// The scorer goes away under load, with all of its connections, and comes back at the same address. One process refuses calls
// meanwhile, the other lets those pass that the local scorer finds harmless.

const awaySeconds = sizeOf({ usual: 10, long: 30, variable: 'SCORER_AWAY_SECONDS' })
/** A scorer that has failed is left alone for five seconds; the rest is for a busy machine. */
const backWithinMs = 15_000
/** In each phase, of each process. */
const callsLeast = 15

const scorer = await startScorerDouble()
const entry = { name: 'remote', adapter: 'openai', base_url: scorer.baseUrl, model: 'omni' }
const file = { scorers: [{ ...entry, deadline_ms: 1000 }] }
const environment = await writeModerationFile(file)
const allowing = await writeModerationFile({ ...file, degraded: 'allow' })
const stack = useStack({ environment })

const modelOf = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
} as const satisfies Record<Format, string>

/** Both scorers find it, the local one by its words. */
const marked = 'I want to kill myself tonight. [[cat:self-harm=0.9]]'
const kinds = ['harmless', 'harmless', 'harmless', 'marked', 'marked answer'] as const
type Kind = (typeof kinds)[number]

/** Each text is new, because scores are remembered. Nothing in a prompt shows what its answer will be. */
function promptOf(kind: Kind, number: number): string {
  if (kind === 'marked') return `Number ${number}. ${marked}`
  const words = `The sun rose over hill number ${number}.`
  const text = kind === 'harmless' ? words : `${words} ${marked} The end.`
  return `Number ${number}. ${hiddenPromptFor({ text })}`
}

type Phase = 'before' | 'away' | 'back'
type Call = {
  kind: Kind
  isStreamed: boolean
  outcome: string
  requestId: string
  startedMs: number
}
/** Of each process, the calls that began and ended in one phase. */
type Calls = Record<Phase, Call[]>

let [phase, number]: [Phase, number] = ['before', 0]

async function send(target: Target): Promise<Call> {
  const kind = kinds[++number % kinds.length] ?? 'harmless'
  const format = formats[number % formats.length] ?? 'chat'
  const content = promptOf(kind, number)
  const input =
    format === 'responses' ? { input: content } : { messages: [{ role: 'user', content }] }
  const limit = format === 'messages' && { max_tokens: 500 }
  const stream = Math.floor(number / 3) % 2 === 0
  const startedMs = performance.now()
  const payload = JSON.stringify({ model: modelOf[format], ...input, ...limit, stream })
  const { status, text, headers } = await beginRaw(target, { path: pathOf[format], payload }).answer
  const [code = ''] = /moderation_blocked|policy_evaluation_unavailable/.exec(text) ?? []
  // What a caller gets of a marked text is nothing, at any time.
  expect(`${text} ${stream && status === 200 ? textOf(text) : ''}`).not.toContain('kill myself')
  const outcome = code === '' && status === 200 ? 'served' : `${status} ${code || text}`
  return { kind, isStreamed: stream, outcome, requestId: headers['x-request-id'] ?? '', startedMs }
}

/** Calls a process all the time, in some lines side by side, each for a tenant of its own. */
function startLoad(baseUrl: string, tenants: readonly Tenant[]) {
  const calls: Calls = { before: [], away: [], back: [] }
  let isOver = false
  const lines = tenants.map(async ({ project_key: credential }) => {
    while (!isOver) {
      const began = phase
      const call = await send({ baseUrl, credential })
      if (began === phase) calls[phase].push(call)
      await sleep(100)
    }
  })
  return {
    calls,
    async stop() {
      isOver = true
      await Promise.all(lines)
    },
  }
}

/** What became of calls, each outcome once. */
const outcomesOf = (calls: readonly Call[], kind: Kind) =>
  new Set(calls.filter((call) => call.kind === kind).map(({ outcome }) => outcome))

/** Some of every kind, streamed and plain: a slow machine takes longer to send them. */
function areEnough(calls: readonly Call[]): boolean {
  const sorts = new Set(calls.map(({ kind, isStreamed }) => `${kind} ${isStreamed}`))
  return calls.length >= callsLeast && sorts.size === 2 * new Set(kinds).size
}

const unavailable = '503 policy_evaluation_unavailable'
const blocked = '400 moderation_blocked'
/** The status of a stream is sent before its answer is known. */
const blockedAnswers = new Set([blocked, '200 moderation_blocked'])

/** What the events of these calls say, and how many there are. */
async function readEvents(calls: readonly Call[]) {
  const client = new pg.Client({ connectionString: stack().database.url })
  await client.connect()
  try {
    const { rows } = await client.query<{ decision: string; degraded: string; count: number }>(
      `select header->>'decision' as decision, header->>'moderation_degraded' as degraded,
         count(*)::int as count
       from event where kind = 'enforcement' and header->>'request_id' = any ($1) group by 1, 2`,
      [calls.map(({ requestId }) => requestId)],
    )
    return rows
  } finally {
    await client.end()
  }
}

/** When the last harmless call began that was not served, since a moment. */
const lastFailureMs = (calls: readonly Call[], sinceMs: number) =>
  Math.max(
    0,
    ...calls
      .filter(({ kind, outcome }) => kind === 'harmless' && outcome !== 'served')
      .map(({ startedMs }) => startedMs - sinceMs),
  )

/** The load before, during and after the outage. */
async function loadThroughOutage(addresses: readonly string[]) {
  const tenants = await createTenants(stack().service, 4)
  const loads = addresses.map((address) => startLoad(address, tenants))
  while (!loads.every(({ calls }) => areEnough(calls.before))) await sleep(100)
  await scorer.stop()
  phase = 'away'
  await sleep(awaySeconds * 1000)
  while (!loads.every(({ calls }) => areEnough(calls.away))) await sleep(100)
  phase = 'back'
  const backMs = performance.now()
  await scorer.start()
  // Until everything was served for a while.
  const isQuiet = () =>
    loads.every(
      ({ calls: { back } }) =>
        areEnough(back) && performance.now() - backMs - lastFailureMs(back, backMs) > 2000,
    )
  while (!isQuiet() && performance.now() - backMs < backWithinMs) await sleep(100)
  await Promise.all(loads.map((load) => load.stop()))
  return { calls: loads.map(({ calls }) => calls), backMs }
}

test(`a scorer that is away for ${awaySeconds} s lets nothing pass unseen, and is asked again when it is back`, async () => {
  const api = await stack().startApi('api-allowing', allowing)
  const readReadiness = async () => (await fetch(`${api.baseUrl}/health/ready`)).status
  await expect.poll(readReadiness, eventually).toBe(200)
  const { calls, backMs } = await loadThroughOutage([stack().description.base_url, api.baseUrl])
  const [refusing, allowed] = calls
  if (!refusing || !allowed) throw new Error('There are two processes.')
  const tookMs = lastFailureMs(refusing.back, backMs)
  console.log(
    `away for ${awaySeconds} s: ${refusing.away.length} calls to the process that refuses, ${allowed.away.length} to the one that allows; all served ${Math.round(tookMs)} ms after the return`,
  )
  for (const { before, away, back } of calls) {
    expect([before, away, back].map(areEnough)).toEqual([true, true, true])
    expect(outcomesOf(before, 'harmless')).toEqual(new Set(['served']))
    expect(outcomesOf(back, 'harmless')).toContain('served')
    for (const some of [before, away, back]) {
      expect(outcomesOf(some, 'marked')).toEqual(new Set([blocked]))
    }
    expect(outcomesOf(before, 'marked answer')).toEqual(blockedAnswers)
  }
  expect(outcomesOf(refusing.away, 'harmless')).toEqual(new Set([unavailable]))
  expect(outcomesOf(refusing.away, 'marked answer')).toEqual(new Set([unavailable]))
  expect(outcomesOf(allowed.away, 'harmless')).toEqual(new Set(['served']))
  expect(outcomesOf(allowed.away, 'marked answer')).toEqual(blockedAnswers)
  expect(lastFailureMs(allowed.back, backMs)).toBe(0)
  expect(tookMs).toBeLessThan(backWithinMs - 2000)
  await expectEvents(allowed.away)
}, 300_000)

/** Whoever reads the events of an outage sees which calls nothing but the local scorer has seen. */
async function expectEvents(away: readonly Call[]) {
  const served = away.filter(({ outcome }) => outcome === 'served')
  const expected = [{ decision: 'allow', degraded: 'true', count: served.length }]
  await expect.poll(() => readEvents(served), eventually).toEqual(expected)
}
