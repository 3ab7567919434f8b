import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import {
  type Call,
  everyWay,
  isCounting,
  nameOf,
  openEveryWay,
} from '#inference/judging/testing/every-way.ts'
import { createJudgeDouble, judges } from '#moderation/testing/judge-double.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'
import { harmless, planted } from '#redaction/testing/corpus.ts'

// Calls of an organization that redacts, on every way to a model.

const patience = { timeout: 300_000 }
const ways = everyWay.filter(({ caller }) => caller === 'key')
const answered = ways.filter(({ endpoint }) => !isCounting(endpoint))

type Every = Awaited<ReturnType<typeof openEveryWay>>

async function openRedacting(environment: Record<string, string> = {}, rollout = {}) {
  const every = await openEveryWay(environment)
  await save(every, { rules: { redact: true }, rollout })
  return every
}

async function save({ api }: Every, config: object) {
  const pin = () => api.house.policies.inForce.pin(api.organization.organizationId).snapshot
  const before = pin().epoch
  const { status } = await api.send(saveGatewayConfig, { body: { config } })
  expect(status).toBe(200)
  await waitUntil(() => pin().epoch > before)
}

/** What the upstream has received since the last time. */
async function received({ upstream }: Every): Promise<string> {
  const answer = await fetch(`${upstream.url}/control/state`)
  const { lastRequests } = (await answer.json()) as { lastRequests: { body: unknown }[] }
  await fetch(`${upstream.url}/control/reset`, { method: 'POST' })
  return JSON.stringify(lastRequests.map(({ body }) => body))
}

async function eventsOf({ api }: Every) {
  const { rows } = await sql<{ header: Record<string, unknown> }>`
    select header from event where kind = 'enforcement'
      and organization_id = ${api.organization.organizationId} order by seq`.execute(api.house.db)
  return rows.map(({ header }) => header)
}

/** As it stands in a script: nothing can be found there, and the upstream says what it means. */
const escaped = (text: string) =>
  Array.from({ length: text.length }, (_, at) => {
    const unit = text.charCodeAt(at).toString(16).padStart(4, '0')
    return String.raw`\u${unit}`
  }).join('')

/** Puts a script into the last message that says this, whatever else it says. */
const scriptOf = (members: Record<string, string>) =>
  `#script {${Object.entries(members)
    .map(([name, text]) => `"${name}":"${escaped(text)}"`)
    .join()}}`

const values = planted.map(([text]) => text)

test('the corpus leaves in no request, and what only looks like it does', patience, async () => {
  const every = await openRedacting()
  const asked = [...values, ...harmless].join(' ; ')
  let counted = false
  for (const way of ways) {
    const answer = await every.send(way, { asked })
    expect(answer.statusCode, nameOf(way)).toBe(200)
    const sent = await received(every)
    // Not every upstream has a counter; then nothing is sent.
    if (isCounting(way.endpoint) && sent === '[]') continue
    counted ||= isCounting(way.endpoint)
    for (const [text, kind] of planted) {
      expect(sent, nameOf(way)).not.toContain(JSON.stringify(text).slice(1, -1))
      expect(sent, nameOf(way)).toContain(`[${kind}_1]`)
    }
    for (const text of harmless) expect(sent).toContain(JSON.stringify(text).slice(1, -1))
  }
  expect(counted).toBe(true)
  const kinds = ['EMAIL', 'CARD', 'SSN', 'PHONE', 'IBAN', 'IP', 'SECRET']
  for (const event of await eventsOf(every)) {
    expect(event['redactions']).toEqual(
      kinds.map((type) => ({
        type,
        replaced: planted.filter(([, kind]) => kind === type).length,
        withheld: 0,
        passed: 0,
      })),
    )
  }
})

test('the corpus leaves in no answer', patience, async () => {
  const every = await openRedacting()
  const said = [...values, ...harmless].join(' ; ')
  for (const way of answered) {
    const asked = `Go.\n${scriptOf({ text: said })}`
    const { body, statusCode, headers } = await every.send(way, { asked })
    expect(statusCode, nameOf(way)).toBe(200)
    const text = textOf(body)
    for (const [value, kind] of planted) {
      expect(text, nameOf(way)).not.toContain(value)
      expect(text, nameOf(way)).toContain(`[${kind}_1]`)
    }
    for (const value of harmless) expect(text).toContain(value)
    expect(Number(headers['x-policy-holdback'])).toBeGreaterThan(520)
  }
})

/** What an answer says, plain or streamed, in any format: its deltas, or its whole texts. */
function textOf(body: string): string {
  const frames = body.includes('data: ')
    ? body
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .map((line) => JSON.parse(line.slice(6)) as unknown)
    : [JSON.parse(body) as unknown]
  return frames.flatMap((frame) => textsIn(frame)).join('')
}

function textsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') {
    return ['text', 'content', 'delta'].includes(name) ? [value] : []
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([member, inner]) =>
    textsIn(inner, Array.isArray(value) ? name : member),
  )
}

const mail = 'jane@example.com'

test('reasoning and refusals are redacted, and the arguments of tools pass', patience, async () => {
  const every = await openRedacting()
  const [thinking, refusal] = [`About ${mail}.`, `Not for ${mail}.`]
  for (const way of answered) {
    const script = scriptOf({ thinking, refusal })
    expect((await every.send(way, { asked: `Go.\n${script}` })).body, nameOf(way)).not.toContain(
      mail,
    )
    const calls = `[{"name":"send","arguments":{"to":"${escaped(mail)}"}}]`
    const { body } = await every.send(way, { asked: `Go.\n#script {"toolCalls":${calls}}` })
    expect(body, nameOf(way)).toMatch(/\bsend\b/)
  }
  const passed = (await eventsOf(every)).filter((_, number) => number % 2 === 1)
  for (const event of passed) {
    expect(event['redactions']).toEqual([{ type: 'EMAIL', replaced: 0, withheld: 0, passed: 1 }])
  }
})

test('a value has the same placeholder in the request and in its answer', patience, async () => {
  const every = await openRedacting()
  const script = scriptOf({ text: `To joe@example.com, ${mail} and eve@example.com.` })
  for (const way of answered) {
    const { body } = await every.send(way, { asked: `I am ${mail}.\n${script}` })
    expect(textOf(body), nameOf(way)).toContain('To [EMAIL_2], [EMAIL_1] and [EMAIL_3].')
  }
})

test('scorers and judges outside of this process see nothing of it', patience, async () => {
  const scorer = await createScorerDouble()
  const judge = await createJudgeDouble()
  const asked: string[] = []
  judge.become(
    judges((_, content) => {
      asked.push(content)
      return 0
    }),
  )
  const folder = await mkdtemp(join(tmpdir(), 'moderation-'))
  onTestFinished(async () => {
    await scorer[Symbol.asyncDispose]()
    await judge.close()
    await rm(folder, { recursive: true })
  })
  const file = join(folder, 'moderation.json')
  await writeFile(
    file,
    JSON.stringify({
      scorers: [{ name: 'remote', adapter: 'openai', base_url: scorer.baseUrl, model: 'omni' }],
      judge: { adapter: 'generic', base_url: judge.baseUrl, model: 'judge' },
    }),
  )
  const every = await openRedacting({ MODERATION_FILE: file })
  await every.putInForce(
    { mode: 'enforcing', rule: 'Nobody may be rude.', direction: 'both' },
    false,
  )
  await every.putInForce(
    { mode: 'monitoring', rule: 'Nobody may be sad.', direction: 'both' },
    false,
  )
  const script = scriptOf({ text: `Mail to ${mail}, and pay with 4111 1111 1111 1111.` })
  for (const way of ways) {
    const answer = await every.send(way, { asked: `I am ${mail}.\n${script}` })
    expect(answer.statusCode, nameOf(way)).toBe(200)
  }
  const seen = [JSON.stringify(scorer.calls), JSON.stringify(asked)]
  for (const text of seen) {
    expect(text).toContain('[EMAIL_1]')
    expect(text).not.toContain(mail)
    expect(text).not.toContain('4111 1111 1111 1111')
  }
})

test('rules judge what was said before it is redacted', patience, async () => {
  const every = await openRedacting()
  await every.putInForce(
    { mode: 'enforcing', rule: 'cel: pii("EMAIL") > 0', direction: 'both' },
    false,
  )
  for (const way of ways) expect(await every.ask(way, { asked: mail })).toBe('blocked')
  const script = scriptOf({ text: `To ${mail}.` })
  for (const way of answered) {
    expect((await every.send(way, { asked: `Go.\n${script}` })).body).toContain('policy_blocked')
  }
})

test('nothing is redacted where the configuration does not enforce', patience, async () => {
  const part = { enabled: true, sample_percent: 100, targets: [] }
  const every = await openRedacting({}, { shadow: part })
  const [way] = ways as [Call]
  const ask = () => every.send(way, { asked: `I am ${mail}.` })
  await ask()
  expect(await received(every)).toContain(mail)
  await save(every, { rules: { redact: true }, rollout: { canary: part } })
  await ask()
  expect(await received(every)).not.toContain(mail)
  await save(every, { rules: { redact: false } })
  await ask()
  expect(await received(every)).toContain(mail)
})
