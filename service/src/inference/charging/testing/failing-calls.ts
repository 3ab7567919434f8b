import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { onTestFinished } from 'vitest'

import { writeModeration } from '#inference/enforcement/testing/moderated-calls.ts'
import { createJudgeDouble, judges } from '#moderation/testing/judge-double.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'
import { completion, preparePlainCalls, sendPlain, usage } from '#testing/plain-calls.ts'

import type { Failure } from './failures.ts'

export type FailingCall = {
  failure: Failure
  isStreamed: boolean
  /** `m` is asked plainly for plain answers, `streams` never. */
  model: 'm' | 'streams'
  words: number
  /** The failure begins after this many words. */
  failsAt: number
}

export type Result = {
  /** Words that the upstream has sent. */
  generated: number
  /** Words that the caller has got. */
  delivered: number
  isComplete: boolean
  /** The error that the answer ended with. */
  code: string | null
  /** What the caller was told about the charge. */
  told: 'charged' | 'free' | null
  charge: number
}

const pieceWords = 8
const paceMs = 4

/** A service with a scorer and a judge, in front of an upstream, each of which fails as a call says. One call at a time. */
export async function prepareFailingCalls(rule: string) {
  const scorer = await createScorerDouble()
  onTestFinished(() => scorer[Symbol.asyncDispose]())
  const judge = await createJudgeDouble()
  onTestFinished(() => judge.close())
  const scorers = [
    { name: 'remote', adapter: 'openai', base_url: scorer.baseUrl, model: 'm', deadline_ms: 500 },
  ]
  const judging = { adapter: 'generic', base_url: judge.baseUrl, model: 'judge' }
  const moderation = { scorers, judge: { ...judging, deadline_ms: 1000, hedge_ms: 400 } }
  const calls = await preparePlainCalls({
    settings: { idle_timeout_ms: 1000, total_timeout_ms: 20_000 },
    environment: { ...(await writeLimits()), ...(await writeModeration(moderation)) },
  })
  const recover = () => {
    scorer.become('answers')
    judge.become(judges(() => 0))
  }
  recover()
  await enforce(calls, rule)

  let made = 0

  async function make(asked: FailingCall): Promise<Result> {
    const { failure, isStreamed, model } = asked
    const number = ++made
    let generated = 0
    const word = (at: number) => `c${number}w${at}${failure.isTooLong ? 'x'.repeat(3000) : ''}`
    const caller = { hangUp: () => {} }

    async function behave(response: ServerResponse, isPlain: boolean) {
      const stage = { scorer, judge, response, hangUp: () => caller.hangUp() }
      if (!isPlain) response.writeHead(200, { 'content-type': 'text/event-stream' })
      const written: string[] = []
      for (let at = 0; at < asked.words; at++) {
        if (at === asked.failsAt && failure.begin && !(await failure.begin(stage))) return
        written.push(word(at))
        const isPieceOver = written.length % pieceWords === 0 || at === asked.words - 1
        if (isPlain || !isPieceOver) continue
        const piece = written.slice(-(written.length % pieceWords || pieceWords))
        response.write(chunkOf({ content: `${piece.join(' ')} ` }))
        generated = written.length
        await sleep(paceMs)
      }
      generated = written.length
      if (isPlain) sendPlain(response, completion(written.join(' ')))
      else response.end(ending)
    }
    calls.upstream.behave = (response, index) => {
      const isPlain = calls.upstream.bodies[index - 1]?.['stream'] !== true
      behave(response, isPlain).catch(() => response.destroy())
    }
    const content = `Question ${number}: write.`
    const messages = [{ role: 'user', content }]
    const call = begin(calls, { model, stream: isStreamed, messages })
    caller.hangUp = call.hangUp
    const got = await call.received
    await waitUntil(async () => (await countEvents(calls)) === number)
    recover()
    return {
      generated,
      delivered: new Set(got.text.match(new RegExp(`c${number}w\\d+`, 'g'))).size,
      isComplete: got.status === 200 && (!isStreamed || got.text.includes('[DONE]')),
      code: /"code":"(\w+)"/.exec(got.text)?.[1] ?? null,
      told: got.text.includes('What was generated is charged.')
        ? 'charged'
        : /(?:Nothing is charged|costs nothing)/.test(got.text)
          ? 'free'
          : null,
      charge: await readLastCharge(calls),
    }
  }
  return make
}

/** Sends a call; what was received of its answer is known when the connection is closed, however that comes. */
function begin({ app, credential }: Calls, body: object) {
  const { port } = app.server.address() as AddressInfo
  const call = request({
    host: '127.0.0.1',
    port,
    path: '/v1/chat/completions',
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
  })
  const got = { status: 0, text: '' }
  const received = new Promise<typeof got>((resolve) => {
    call.on('error', () => undefined)
    call.once('close', () => resolve(got))
    call.once('response', (response) => {
      got.status = response.statusCode ?? 0
      response.on('error', () => undefined)
      response.setEncoding('utf8').on('data', (more: string) => (got.text += more))
    })
  })
  call.end(JSON.stringify(body))
  return { received, hangUp: () => void call.destroy() }
}

type Calls = Awaited<ReturnType<typeof preparePlainCalls>>

const many = {
  requests_per_minute: 1_000_000,
  requests_per_day: 1_000_000,
  tokens_per_minute: 1_000_000_000,
}

async function writeLimits() {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-limits-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'limits.json')
  await writeFile(
    file,
    JSON.stringify({
      free: { organization: { ...many, tokens_per_day: 1_000_000_000 }, project: many, key: many },
    }),
  )
  return { LIMITS_FILE: file }
}

async function enforce({ send, house, organization }: Calls, rule: string) {
  const { body } = await send(createPolicy, {
    body: { name: 'Kindness', rule, mode: 'enforcing', direction: 'both', scope: 'organization' },
  })
  const { id } = body as { id: string }
  const epoch = () => house.policies.inForce.pin(organization.organizationId).snapshot.epoch
  const before = epoch()
  await send(publishPolicy, { params: { policy_id: id }, body: { revision: 1 } })
  await waitUntil(() => epoch() > before)
}

const chunkOf = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', model: 'theirs', choices: [{ index: 0, delta, finish_reason }] })}\n\n`

const ending = `${chunkOf({}, 'stop')}data: ${JSON.stringify({
  id: 'c',
  model: 'theirs',
  choices: [],
  usage,
})}\n\ndata: [DONE]\n\n`

async function countEvents({ house }: Calls): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::float8 as count from event
    where kind = 'enforcement' and header->>'phase' = 'call'`.execute(house.db)
  return rows[0]?.count ?? 0
}

/** 0 where the call was refused before its hold. */
async function readLastCharge({ house }: Calls): Promise<number> {
  const { rows } = await sql<{ amount: number }>`
    select coalesce((select amount from ledger_entry entry
      where entry.kind = 'usage' and entry.id = event.header->>'request_id'), 0)::float8 as amount
    from event where kind = 'enforcement' and header->>'phase' = 'call'
    order by seq desc limit 1`.execute(house.db)
  return rows[0]?.amount ?? 0
}
