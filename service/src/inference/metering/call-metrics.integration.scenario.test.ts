import { randomBytes, randomInt } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import {
  completion,
  type PlainCalls,
  preparePlainCalls,
  sendPlain,
  usage,
} from '#testing/plain-calls.ts'

// What operators see of calls in /metrics.

const many = {
  requests_per_minute: 100_000,
  requests_per_day: 1_000_000,
  tokens_per_minute: 1e9,
  concurrent_requests: 1000,
}

async function prepare() {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-metrics-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const LIMITS_FILE = join(folder, 'limits.json')
  const free = { organization: many, project: many, key: many }
  await writeFile(LIMITS_FILE, JSON.stringify({ free }))
  const calls = await preparePlainCalls({ environment: { LIMITS_FILE } })
  calls.upstream.behave = (response) => sendPlain(response, completion('All is well.'))
  return calls
}

async function readSeries({ house }: PlainCalls, names: RegExp): Promise<Map<string, number>> {
  const lines = (await house.metrics.registry.metrics()).split('\n')
  const series = lines.filter((line) => names.test(line) && !line.startsWith('#'))
  return new Map(
    series.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end))]
    }),
  )
}

async function untilInForce({ house, organization }: PlainCalls, change: () => Promise<unknown>) {
  const epoch = () => house.policies.inForce.pin(organization.organizationId).snapshot.epoch
  const before = epoch()
  await change()
  await waitUntil(() => epoch() > before)
}

const publish = (calls: PlainCalls, mode: string, term: string) =>
  untilInForce(calls, async () => {
    const rule = `cel: text.contains("${term}")`
    const { body } = await calls.send(createPolicy, {
      body: { name: term, rule, mode, scope: 'organization' },
    })
    const params = { policy_id: body.id }
    const { status } = await calls.send(publishPolicy, { params, body: { revision: 1 } })
    expect(status).toBe(200)
  })

const ask = (calls: PlainCalls, content: string) =>
  calls.ask({ messages: [{ role: 'user', content }] })

test('tokens and cost are counted by the id of the model, each token once', async () => {
  const calls = await prepare()
  const details = { prompt_tokens_details: { cached_tokens: 12 } }
  calls.upstream.behave = (response, call) =>
    sendPlain(response, {
      ...completion('All is well.'),
      usage: call === 1 ? usage : { ...usage, ...details },
    })
  for (const model of ['m', 'm', 'silent']) expect((await calls.ask({ model })).status).toBe(200)
  expect(await readSeries(calls, /^gatehouse_(tokens|cost)/)).toEqual(
    new Map([
      ['gatehouse_tokens_total{model="m",kind="input"}', 20 + 8],
      ['gatehouse_tokens_total{model="m",kind="output"}', 60],
      ['gatehouse_tokens_total{model="m",kind="cached_input"}', 12],
      ['gatehouse_tokens_total{model="silent",kind="input"}', 8],
      ['gatehouse_tokens_total{model="silent",kind="cached_input"}', 12],
      ['gatehouse_tokens_total{model="silent",kind="output"}', 30],
      ['gatehouse_cost_usd_total{model="m"}', 0.0001],
      ['gatehouse_cost_usd_total{model="silent"}', 0.00005],
    ]),
  )
})

test('a call that fails upstream or is refused uses nothing', async () => {
  const calls = await prepare()
  calls.upstream.behave = (response) => response.writeHead(400).end('{}')
  expect((await calls.ask()).status).toBeGreaterThanOrEqual(400)
  expect((await calls.ask({ model: 'no such model' })).status).toBe(404)
  expect(await readSeries(calls, /^gatehouse_(tokens|cost)/)).toEqual(new Map())
})

const decided = (decision: string, mode: string) =>
  `gatehouse_policy_decisions_total{decision="${decision}",mode="${mode}"}`

test('decisions of policies are counted, applied ones and those that only monitor', async () => {
  const calls = await prepare()
  await publish(calls, 'enforcing', 'weapon')
  await publish(calls, 'monitoring', 'poison')
  expect((await ask(calls, 'Hello')).status).toBe(200)
  expect((await ask(calls, 'A weapon')).status).toBe(400)
  expect((await ask(calls, 'A poison')).status).toBe(200)
  expect((await ask(calls, 'A weapon and a poison')).status).toBe(400)
  expect(await readSeries(calls, /^gatehouse_policy_decisions/)).toEqual(
    new Map([
      [decided('allow', 'enforcing'), 1],
      [decided('refuse', 'enforcing'), 2],
      [decided('refuse', 'monitoring'), 1],
    ]),
  )
})

test('so are those of the gateway’s configuration, in force and in the shadow', async () => {
  const calls = await prepare()
  const rules = { denylist: ['bomb'], reason_codes: ['ESCALATE_HR'] }
  const config = {
    rules,
    refusal_replacement: { mode: 'escalate', escalation_path: 'help@example.com' },
  }
  const save = (more: object) =>
    untilInForce(calls, async () => {
      const sent = { body: { config: { ...config, ...more } } }
      expect((await calls.send(saveGatewayConfig, sent)).status).toBe(200)
    })
  await save({})
  expect((await ask(calls, 'A bomb')).status).toBe(400)
  await save({ rollout: { shadow: { enabled: true, sample_percent: 100 } } })
  expect((await ask(calls, 'A bomb')).status).toBe(200)
  expect((await ask(calls, 'Hello')).status).toBe(200)
  expect(await readSeries(calls, /^gatehouse_policy_decisions/)).toEqual(
    new Map([
      [decided('escalate', 'enforcing'), 1],
      [decided('escalate', 'monitoring'), 1],
      [decided('allow', 'enforcing'), 1],
    ]),
  )
})

const random = () => randomBytes(randomInt(1, 24)).toString('base64url')

/** The same kinds of calls each time, with whatever a caller can choose at random. */
async function sendRandomCalls({ app, credential }: PlainCalls) {
  const paths = ['/v1/chat/completions', '/v1/messages', '/v1/responses', `/v1/${random()}`]
  const models = ['m', `m-${random()}`, `only/${random()}`, `m"}\n${random()}`, '__proto__']
  for (const url of paths) {
    for (const model of models) {
      const response = await app.inject({
        method: 'POST',
        url,
        headers: {
          authorization: `Bearer ${credential}`,
          'x-policy-user': random(),
          'x-policy-target': random(),
          'x-request-id': random(),
          'user-agent': random(),
          [`x-${random().toLowerCase()}`]: random(),
        },
        payload: {
          model,
          max_tokens: 10,
          messages: [{ role: 'user', content: random() }],
          input: random(),
          user: random(),
          metadata: { user_id: random(), [random()]: random() },
        },
      })
      expect(response.statusCode).toBeLessThan(500)
    }
  }
}

test('random models, paths and headers make no new series', async () => {
  const calls = await prepare()
  await publish(calls, 'monitoring', 'poison')
  // Twice: some series begin with the second call of a kind.
  await sendRandomCalls(calls)
  await sendRandomCalls(calls)
  const before = [...(await readSeries(calls, /^gatehouse_/)).keys()]
  for (let round = 0; round < 5; round++) await sendRandomCalls(calls)
  const after = await readSeries(calls, /^gatehouse_/)
  expect([...after.keys()].filter((each) => !before.includes(each))).toEqual([])
  const models = [...after.keys()].flatMap((each) => /model="(.*?)"/.exec(each)?.[1] ?? [])
  expect(new Set(models)).toEqual(new Set(['m']))
})
