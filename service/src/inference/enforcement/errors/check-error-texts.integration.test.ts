import { hiddenScript } from '@gatehouse/tools/scripted-upstream/script'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import {
  type Call,
  everyWay,
  isCounting,
  nameOf,
  openEveryWay,
} from '#inference/enforcement/testing/every-way.ts'
import {
  prepareModeratedCalls,
  writeModeration,
} from '#inference/enforcement/testing/moderated-calls.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'
import { sendPlain } from '#testing/plain-calls.ts'

// What a provider says in its errors is judged like an answer, whether it says it instead of one or in the middle of one.

const patience = { timeout: 120_000 }

const ways = everyWay.filter(({ endpoint, caller }) => caller === 'key' && !isCounting(endpoint))

/** A plain answer cannot fail in the middle, so that its provider refuses the request instead. */
const scriptOf = ({ shape }: Call, message: string) =>
  shape === 'plain'
    ? { error: { status: 400, message } }
    : { text: 'One two.', errorAfter: { pieces: 1, message } }

type Every = Awaited<ReturnType<typeof openEveryWay>>

/** What callers get of an error with this message, on every way. */
async function errorsOf({ send }: Every, message: string) {
  const bodies: { name: string; shape: Call['shape']; body: string }[] = []
  for (const way of ways) {
    const asked = `Go.\n${hiddenScript(scriptOf(way, message))}`
    const { body, statusCode } = await send(way, { asked })
    const name = `${nameOf(way)}: ${body}`
    expect(statusCode, name).toBe({ plain: 400, folded: 502, streamed: 200 }[way.shape])
    bodies.push({ name, shape: way.shape, body })
  }
  return bodies
}

async function expectOurs(every: Every, message: string, secret: string) {
  for (const { name, shape, body } of await errorsOf(every, message)) {
    expect(body, name).not.toContain(secret)
    expect(body, name).toContain(
      shape === 'plain'
        ? 'The model provider refused the request with 400.'
        : 'The model provider failed.',
    )
  }
}

/** No call was blocked: each has failed, or was cut off, as it would have been without any rule. */
async function expectUnblocked({ api }: Every) {
  const { rows } = await sql<{ header: Record<string, unknown> }>`
    select header from event where kind = 'enforcement'
      and organization_id = ${api.organization.organizationId}`.execute(api.house.db)
  expect(rows.length).toBeGreaterThan(0)
  for (const { header } of rows) {
    expect(['failed', 'cut']).toContain(header['outcome'])
    expect(header).toMatchObject({ decision: 'allow' })
    for (const member of ['matches', 'denylist_hits', 'triggered_categories']) {
      expect(header[member] ?? []).toEqual([])
    }
  }
}

/** A text without findings arrives unchanged. */
async function expectHonest(every: Every) {
  const honest = 'The field "top_p" is unknown: use 1 😀.'
  for (const { name, body } of await errorsOf(every, honest)) {
    expect(body, name).toContain(JSON.stringify(honest).slice(1, -1))
  }
}

test('exact rules about answers', patience, async () => {
  const every = await openEveryWay()
  await every.putInForce(
    { mode: 'enforcing', rule: 'cel: text.contains("kumquat")', direction: 'response' },
    false,
  )
  await expectOurs(every, 'You said kumquat.', 'kumquat')
  await expectHonest(every)
  await expectUnblocked(every)
})

test.each([false, true])(
  'the denylist, with other words instead: %j',
  patience,
  async (isReplaced) => {
    const every = await openEveryWay()
    const rules = { denylist: ['kumquat'], rewrite_instead_of_refuse: isReplaced }
    await every.configure({ rules })
    await expectOurs(every, 'You said kumquat.', 'kumquat')
    await expectHonest(every)
    await expectUnblocked(every)
  },
)

test('categories that are always blocked', patience, async () => {
  const every = await openEveryWay()
  await expectOurs(every, 'You said [[cat:self-harm=0.9]].', 'self-harm')
  await expectHonest(every)
})

test('what is only watched for lets them pass, and is not noted', patience, async () => {
  const every = await openEveryWay()
  const rules = { denylist: ['kumquat'], flagged_categories: ['hate'] }
  await every.configure({ rules, rollout: { shadow: { enabled: true, sample_percent: 100 } } })
  const message = 'You said kumquat [[cat:hate=0.9]].'
  for (const { name, body } of await errorsOf(every, message)) expect(body, name).toContain(message)
  await expectUnblocked(every)
})

test('rules in plain language', patience, async () => {
  const scorers = [{ name: 'scripted', adapter: 'scripted' }]
  const every = await openEveryWay(
    await writeModeration({ scorers, judge: { adapter: 'scripted' } }),
  )
  const creation = {
    mode: 'enforcing',
    rule: 'Nobody may be rude.',
    direction: 'response',
  } as const
  await every.putInForce(creation, false)
  await expectOurs(every, `You said [[rule:${every.policyId()}=0.9]].`, '[[rule')
  await expectHonest(every)
})

test('redaction', patience, async () => {
  const every = await openEveryWay()
  await every.configure({ rules: { redact: true } })
  const value = 'john.doe@example.com'
  for (const { name, body } of await errorsOf(every, `You said ${value}, ${value}.`)) {
    expect(body, name).not.toContain(value)
    expect(body, name).toContain('You said [EMAIL_1], [EMAIL_1].')
  }
  await expectHonest(every)
})

test(
  'a message that is cut does not end with the start of what would be redacted',
  patience,
  async () => {
    const every = await openEveryWay()
    await every.configure({ rules: { redact: true } })
    const start = 'Too long: '
    // Its address is cut after the first dot of its domain.
    const message = `${start}${'word '.repeat(393)} somebody-known@example.mail.org and more.`
    const [way] = ways.filter(({ shape }) => shape === 'plain')
    const { body } = await every.send(way!, {
      asked: `Go.\n${hiddenScript(scriptOf(way!, message))}`,
    })
    expect(body).toContain(start)
    expect(body).not.toContain('somebody')
  },
)

const chat = ways.find(
  ({ endpoint, shape }) => endpoint.id === 'createChatCompletion' && shape === 'plain',
)!

/** The error of a call whose provider refuses it with this message and this code. */
async function refusalOf({ send }: Every, message: string, code: string) {
  const script = hiddenScript({ error: { status: 422, message, code } })
  const way = { ...chat, model: 'chat-scripted' as const }
  const answer = await send(way, { asked: `Go.\n${script}` })
  expect(answer.statusCode).toBe(422)
  return (answer.json() as { error: object }).error
}

test('a code outlives its message only if it is one, and if it may leave', patience, async () => {
  const every = await openEveryWay()
  const rule = 'cel: text.contains("kumquat")'
  await every.putInForce({ mode: 'enforcing', rule, direction: 'response' }, false)
  const message = 'The model provider refused the request with 422.'
  const type = 'invalid_request_error'
  const known = { message, type, param: null, code: 'context_length_exceeded' }
  expect(await refusalOf(every, 'A kumquat.', known.code)).toEqual(known)
  const noCode = { ...known, code: 'upstream_rejected' }
  expect(await refusalOf(every, 'A kumquat.', 'a sentence of it')).toEqual(noCode)
  const nothing = { ...noCode, type: 'invalid_request_error' }
  expect(await refusalOf(every, 'Fruit.', 'kumquat')).toEqual(nothing)
  expect(await refusalOf(every, 'Fruit.', 'a sentence of it')).toEqual({
    ...known,
    message: 'Fruit.',
    code: 'a sentence of it',
  })
})

const complaint = (message: string) => ({ error: { message, type: 'server_error' } })

test('the error that a provider sends as an answer', async () => {
  const { calls } = await prepareModeratedCalls({ scorers: [{ name: 's', adapter: 'scripted' }] })
  const ask = async (message: string) => {
    calls.upstream.behave = (response) => sendPlain(response, complaint(message))
    return (await calls.ask({ messages: [{ role: 'user', content: 'Go.' }] })).text
  }
  expect(await ask('[[cat:self-harm=0.9]]')).toContain('"The model provider failed."')
  expect(await ask('A fuse has blown.')).toContain('The model provider failed: A fuse has blown.')
})

test('a text that its scorer cannot be asked about does not leave', async () => {
  const scorer = await createScorerDouble()
  onTestFinished(() => scorer[Symbol.asyncDispose]())
  const place = { base_url: scorer.baseUrl, model: 'm', deadline_ms: 300 }
  const { calls } = await prepareModeratedCalls({
    scorers: [{ name: 'remote', adapter: 'openai', ...place }],
  })
  const ask = async (behaviour: 'answers' | 'hangs up', message: string) => {
    scorer.become('answers')
    calls.upstream.behave = (response) => {
      scorer.become(behaviour)
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify(complaint(message)))
    }
    return calls.ask({ messages: [{ role: 'user', content: 'Go.' }] })
  }
  const passed = await ask('answers', 'A fuse has blown.')
  expect([passed.status, passed.text]).toEqual([400, expect.stringContaining('A fuse has blown.')])
  const { status, text } = await ask('hangs up', 'The oven is cold.')
  expect([status, text]).toEqual([400, expect.stringContaining('refused the request with 400.')])
  expect(text).not.toContain('oven')
})
