import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import type { House } from '#assemble.ts'
import { preparePlainCalls } from '#testing/plain-calls.ts'

import { everyWay, isCounting, openEveryWay } from './testing/every-way.ts'
import { openFakeChecks } from './testing/fake-checks.ts'

// What happens before a request is judged: what is too long is refused, and the others wait for their turn.

test('a text that is too long is refused before any rule reads it', async () => {
  const { send, putInForce } = await openEveryWay()
  await putInForce({ rule: 'cel: text.contains("zz")', mode: 'enforcing' }, false)
  const [count] = everyWay.filter(
    ({ endpoint, caller }) => isCounting(endpoint) && caller === 'key',
  )
  if (!count) throw new Error('Nothing counts tokens.')
  const asked = (length: number) => ({ asked: 'zz '.repeat(length / 3) })
  const codes = []
  for (const length of [300, 4_100_000, 8_700_000]) {
    const { statusCode, body } = await send(count, asked(length))
    const [code] = /policy_blocked|moderation_blocked|request_too_large/.exec(body) ?? [body]
    codes.push(`${statusCode} ${code}`)
  }
  expect(codes).toEqual(['400 policy_blocked', '400 moderation_blocked', '413 request_too_large'])
})

async function writeLimits(): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-limits-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'limits.json')
  const many = { requests_per_minute: 1000, concurrent_requests: 100 }
  await writeFile(file, JSON.stringify({ free: { organization: many, project: many, key: many } }))
  return { LIMITS_FILE: file }
}

test('counts of tokens wait for their turn, as calls do', async () => {
  let entered = 0
  const gate = Promise.withResolvers<void>()
  const beforeHold = () => {
    entered++
    return gate.promise
  }
  const openChecks = openFakeChecks(() => ({ checks: { beforeHold } }))
  const change = ({ inference, ...house }: House): House => ({
    ...house,
    inference: { ...inference, steps: { ...inference.steps, openChecks } },
  })
  const calls = await preparePlainCalls({ change, environment: await writeLimits() })
  const answers = Array.from(
    { length: 20 },
    () => calls.begin({ model: 'm' }, '/v1/messages/count_tokens').answer,
  )
  await waitUntil(() => entered === 16)
  await sleep(100)
  expect(entered).toBe(16)
  gate.resolve()
  for (const answer of answers) expect(await answer).toMatchObject({ status: 200 })
})
