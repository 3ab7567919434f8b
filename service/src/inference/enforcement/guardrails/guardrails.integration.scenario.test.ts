import { hiddenScript } from '@gatehouse/tools/scripted-upstream/script'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import {
  type Call,
  everyWay,
  isCounting,
  nameOf,
  openEveryWay,
} from '#inference/enforcement/testing/every-way.ts'
import { writeModeration } from '#inference/enforcement/testing/moderated-calls.ts'
import { eventsOf, received, textOf } from '#inference/enforcement/testing/open-redacting.ts'
import {
  type AskedQuestion,
  blockedWord,
  createGuardrailDouble,
  guardrailSecret,
} from '#moderation/testing/guardrail-double.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

// Calls under a guardrail of the operator, on every way to a model.

const patience = { timeout: 300_000 }
const ways = everyWay.filter(({ caller }) => caller === 'key')
const answered = ways.filter(({ endpoint }) => !isCounting(endpoint))
/** One way of each format of callers, plain and streamed, to an upstream of its own format and to another. */
const usualWays = answered.filter(
  ({ model, shape }) => shape !== 'folded' && model !== 'responses-scripted',
)

async function open(
  members: object = {},
  reply?: (asked: AskedQuestion) => unknown,
  others: readonly object[] = [],
) {
  const double = await createGuardrailDouble(reply)
  onTestFinished(() => double[Symbol.asyncDispose]())
  const guardrail = {
    name: 'house',
    url: double.url,
    mode: 'enforcing',
    key: { env: 'GUARDRAIL_SECRET' },
    ...members,
  }
  const every = await openEveryWay({
    ...(await writeModeration({ accept_local_only: true, guardrails: [guardrail, ...others] })),
    GUARDRAIL_SECRET: guardrailSecret,
  })
  return { ...every, double }
}

/** What the calls of the organization have cost so far, in their order. */
async function chargesOf({ api }: Awaited<ReturnType<typeof open>>): Promise<number[]> {
  const { rows } = await sql<{ payload: Buffer }>`
    select payload from event where kind = 'enforcement'
      and organization_id = ${api.organization.organizationId} order by seq`.execute(api.house.db)
  return rows.map(({ payload }) => {
    const { usage } = JSON.parse(payload.toString()) as { usage: { credits: number } }
    return usage.credits
  })
}

/** Whether an answer says this and nothing else. A stream of Responses repeats its texts when they are complete. */
function expectSaid({ body }: { body: string }, said: string, name: string) {
  const text = textOf(body)
  const times = Math.max(1, Math.round(text.length / said.length))
  expect(text, name).toBe(said.repeat(times))
}

const isStreamed = ({ shape }: Call) => shape === 'streamed'
const reportOf = (event: Record<string, unknown> | undefined) =>
  (event?.['guardrails'] ?? []) as { direction: string; action: string; code: string | null }[]
const actionsOf = (event: Record<string, unknown> | undefined) =>
  reportOf(event).map(({ direction, action, code }) => [direction, action, code])

const longText = Array.from({ length: 120 }, (_, index) => `word${index}`).join(' ')

test('what a guardrail allows is answered as without one, and is signed', patience, async () => {
  const every = await open()
  for (const way of answered) {
    const answer = await every.send(way, { answered: longText })
    expect(answer.statusCode, nameOf(way)).toBe(200)
    expectSaid(answer, longText, nameOf(way))
  }
  expect(new Set(every.double.signatures)).toEqual(new Set(['right']))
  for (const event of await eventsOf(every)) {
    expect(actionsOf(event)).toEqual([
      ['request', 'allow', null],
      ['response', 'allow', null],
    ])
    expect(event['guardrails']).toContainEqual({
      guardrail_id: null,
      name: 'house',
      mode: 'enforcing',
      direction: 'request',
      action: 'allow',
      code: null,
      took_ms: expect.any(Number),
    })
  }
  const [first] = every.double.questions
  expect(first).toMatchObject({
    direction: 'request',
    organization_id: every.api.organization.organizationId,
    project_id: expect.stringMatching(/^proj_/),
    request_id: expect.stringMatching(/^req_/),
    model: expect.stringContaining('scripted'),
    is_last: true,
  })
})

test('a request that it blocks is 400, free, and is sent to no model', patience, async () => {
  const every = await open()
  for (const way of answered) {
    const before = every.served()
    const answer = await every.send(way, { asked: `This is ${blockedWord}.` })
    expect(answer.statusCode, nameOf(way)).toBe(400)
    expect(answer.body).toContain('policy_blocked')
    expect(answer.headers['x-policy-decision']).toBe('refuse')
    expect(answer.body).toContain(
      "The guardrail 'house' of this gateway does not allow this request: A word is not allowed. It was not sent",
    )
    expect(every.served()).toBe(before)
  }
  for (const event of await eventsOf(every)) {
    expect(event).toMatchObject({
      outcome: 'blocked',
      policy_id: null,
      policy_name: 'house',
      reason_code: 'GUARDRAIL_BLOCKED',
    })
    expect(actionsOf(event)).toEqual([['request', 'block', 'word']])
  }
  expect(new Set(await chargesOf(every))).toEqual(new Set([0]))
})

test('a request is sent as it rewrites it', patience, async () => {
  const every = await open()
  for (const way of answered) {
    const answer = await every.send(way, { asked: 'Call 😀 555-1234 or 555-9876.' })
    expect(answer.statusCode, nameOf(way)).toBe(200)
    const sent = await received(every)
    expect(sent, nameOf(way)).toContain('Call 😀 # or #.')
    expect(sent).not.toMatch(/555-/)
  }
  for (const event of await eventsOf(every))
    expect(actionsOf(event)[0]).toEqual(['request', 'rewrite', 'number'])
})

test(
  'a request that would become much longer than what is held is a failure',
  patience,
  async () => {
    for (const on_error of ['refuse', 'allow'] as const) {
      let length = 500
      const longer = ({ direction, texts }: AskedQuestion) => {
        const [first] = texts.filter(({ text }) => text.startsWith('Hello'))
        if (direction === 'response' || !first) return { action: 'allow' }
        const replacement = 'word '.repeat(length)
        return { action: 'rewrite', spans: [{ index: first.index, start: 0, end: 5, replacement }] }
      }
      const every = await open({ on_error }, longer)
      const [way] = usualWays
      const { statusCode, body } = await every.send(way!, { asked: 'Hello you.' })
      expect(statusCode).toBe(on_error === 'allow' ? 200 : 503)
      if (on_error === 'allow') expect(await received(every)).toContain('Hello you.')
      else expect(body).toContain('did not decide about this request')
      length = 100
      expect((await every.send(way!, { asked: 'Hello you.' })).statusCode).toBe(200)
      expect(await received(every)).toContain('word word')
      const actions = (await eventsOf(every)).map((event) => actionsOf(event)[0])
      expect(actions).toEqual([
        ['request', 'failed', 'unwritable'],
        ['request', 'rewrite', null],
      ])
    }
  },
)

test('an answer that it blocks ends before what it blocks', patience, async () => {
  const every = await open()
  for (const way of answered) {
    const { body, statusCode } = await every.send(way, {
      answered: `${longText} ${blockedWord} ${longText}`,
    })
    expect(body, nameOf(way)).toContain('policy_blocked')
    expect(body).toContain('does not allow this answer')
    expect(body).not.toContain(blockedWord)
    expect(statusCode).toBe(isStreamed(way) ? 200 : 400)
    if (isStreamed(way)) expect(body).toContain('word50')
  }
  for (const event of await eventsOf(every)) {
    expect(event).toMatchObject({ outcome: 'blocked', reason_code: 'GUARDRAIL_BLOCKED' })
    expect(actionsOf(event)[1]).toEqual(['response', 'block', 'word'])
  }
  for (const credits of await chargesOf(every)) expect(credits).toBeGreaterThan(0)
})

test('an answer leaves as it rewrites it', patience, async () => {
  const every = await open()
  const said = `${longText} 555-1234 😀 ${longText} 555-9876`
  for (const way of answered) {
    const answer = await every.send(way, { answered: said })
    expect(answer.statusCode, nameOf(way)).toBe(200)
    expectSaid(answer, said.replaceAll(/\d{3}-\d{4}/g, '#'), nameOf(way))
  }
  for (const event of await eventsOf(every)) {
    expect(event['outcome']).toBe('completed')
    expect(actionsOf(event)[1]).toEqual(['response', 'rewrite', 'number'])
  }
})

test('reasoning, refusals and arguments of tools pass it too', patience, async () => {
  const every = await open()
  for (const way of answered) {
    const asked = `Go.\n${hiddenScript({ toolCalls: [{ name: 'look', arguments: { place: 'House 555-1234' } }] })}`
    const { body } = await every.send(way, { asked })
    expect(body, nameOf(way)).toMatch(/\\?"place\\?":\s*\\?"House #\\?"/)
    expect(body).not.toContain('555-1234')
    const script = hiddenScript({ thinking: 'I think of 555-1234.', refusal: 'Not 555-1234.' })
    const refused = await every.send(way, { asked: `Go.\n${script}` })
    expect(refused.body, nameOf(way)).not.toContain('555-1234')
  }
})

const failures = [
  ['hangs', 'late'],
  ['hangs up', 'unreachable'],
  [500, 'status'],
  [{ raw: '<html>' }, 'malformed'],
  [
    { raw: '{"action":"rewrite","spans":[{"index":0,"start":0,"end":99999,"replacement":""}]}' },
    'malformed',
  ],
  [401, 'misconfigured'],
] as const

test(
  'where it fails, a request is refused, or sent where that was declared',
  patience,
  async () => {
    for (const on_error of ['refuse', 'allow'] as const) {
      const every = await open({ on_error, deadline_ms: 100 })
      for (const [behaviour, problem] of failures) {
        every.double.become(behaviour)
        const mayPass = on_error === 'allow' && problem !== 'misconfigured'
        const [way] = usualWays
        const { statusCode, body } = await every.send(way!)
        expect([on_error, problem, statusCode]).toEqual([on_error, problem, mayPass ? 200 : 503])
        if (!mayPass) expect(body).toContain('policy_evaluation_unavailable')
        const events = await eventsOf(every)
        expect(actionsOf(events.at(-1))[0]).toEqual(['request', 'failed', problem])
        if (!mayPass) expect(events.at(-1)).toMatchObject({ outcome: 'failed' })
        // Otherwise it would be left alone.
        every.double.become('answers')
        await every.send(way!)
      }
    }
  },
)

test('where it fails, an answer ends, or goes on where that was declared', patience, async () => {
  for (const on_error of ['refuse', 'allow'] as const) {
    const failing = (asked: AskedQuestion) =>
      asked.direction === 'response' ? 'no decision' : { action: 'allow' }
    const every = await open({ on_error }, failing)
    for (const way of usualWays) {
      const answer = await every.send(way, { answered: longText })
      if (on_error === 'allow') {
        expectSaid(answer, longText, nameOf(way))
        continue
      }
      expect(answer.body, nameOf(way)).toContain(
        "The guardrail 'house' of this gateway did not decide about this answer",
      )
      expect(answer.body).not.toContain('word0')
    }
    for (const event of await eventsOf(every))
      expect(actionsOf(event)[1]).toEqual(['response', 'failed', 'malformed'])
  }
})

test('one that keeps failing is left alone', patience, async () => {
  const every = await open()
  every.double.become(500)
  const [way] = usualWays
  for (let count = 0; count < 8; count++) expect((await every.send(way!)).statusCode).toBe(503)
  expect(every.double.questions).toHaveLength(5)
  expect(actionsOf((await eventsOf(every)).at(-1))).toEqual([['request', 'failed', 'paused']])
})

test(
  'one that monitors changes nothing, and the event says what it would have done',
  patience,
  async () => {
    const every = await open({ mode: 'monitoring' })
    for (const way of usualWays) {
      const asked = `Call 555-1234, ${blockedWord}.`
      const said = `${longText} 555-1234 ${longText}`
      const answer = await every.send(way, { asked, answered: said })
      expect(answer.statusCode, nameOf(way)).toBe(200)
      expectSaid(answer, said, nameOf(way))
      expect(await received(every)).toContain(asked)
    }
    for (const event of await eventsOf(every)) {
      expect(event).toMatchObject({ outcome: 'completed', enforced: false })
      expect(actionsOf(event)).toEqual([
        ['request', 'block', 'word'],
        ['response', 'rewrite', 'number'],
      ])
    }
  },
)

test('one that monitors and fails changes nothing either', patience, async () => {
  const every = await open({ mode: 'monitoring', deadline_ms: 100 })
  const [way] = usualWays
  for (const behaviour of ['hangs', 401] as const) {
    every.double.become(behaviour)
    expect((await every.send(way!)).statusCode).toBe(200)
  }
  for (const event of await eventsOf(every))
    expect(reportOf(event).every(({ action }) => action === 'failed')).toBe(true)
})

test(
  'several are asked in their order, and later ones see what earlier ones have rewritten',
  patience,
  async () => {
    const second = await createGuardrailDouble()
    onTestFinished(() => second[Symbol.asyncDispose]())
    const every = await open({}, undefined, [
      { name: 'second', url: second.url, mode: 'enforcing' },
    ])
    const [way] = usualWays
    await every.send(way!, { asked: 'Call 555-1234.' })
    const [asked] = second.questions
    expect(JSON.stringify(asked?.texts)).toContain('Call #.')
    expect(second.signatures[0]).toBe('none')
    const [event] = await eventsOf(every)
    const reports = (event?.['guardrails'] ?? []) as { name: string }[]
    expect(reports.map(({ name }) => name)).toEqual(['house', 'second', 'house', 'second'])
  },
)

test(
  'redacted calls show it placeholders, and the caller gets its values back',
  patience,
  async () => {
    const every = await open()
    await every.configure({ rules: { redact: true, redact_restore: true } })
    const mail = 'jane@example.com'
    for (const way of usualWays) {
      const answer = await every.send(way, {
        asked: `I am ${mail}.`,
        answered: 'Dear [EMAIL_1], 555-1234.',
      })
      expectSaid(answer, `Dear ${mail}, #.`, nameOf(way))
    }
    const shown = JSON.stringify(every.double.questions)
    expect(shown).not.toContain(mail)
    expect(shown).toContain('I am [EMAIL_1].')
    expect(shown).toContain('Dear [EMAIL_1], 555-1234.')
  },
)

test(
  'the words of a provider’s error leave only if it allows them as they are',
  patience,
  async () => {
    const every = await open()
    for (const way of usualWays) {
      for (const words of [`This is ${blockedWord}.`, 'Call 555-1234.', 'This is harmless.']) {
        const script = isStreamed(way)
          ? { text: 'One two.', errorAfter: { pieces: 1, message: words } }
          : { error: { status: 400, message: words } }
        const { body } = await every.send(way, { asked: `Go.\n${hiddenScript(script)}` })
        expect(body.includes(words), `${nameOf(way)} ${body}`).toBe(words === 'This is harmless.')
        expect(body).not.toContain('555-1234')
      }
    }
    for (const event of await eventsOf(every)) expect(event).toMatchObject({ decision: 'allow' })
  },
)

test('a count of tokens asks none, and says so', patience, async () => {
  const every = await open()
  const counting = ways.find(({ endpoint }) => isCounting(endpoint))
  const { statusCode, headers } = await every.send(counting!)
  expect(statusCode).toBe(200)
  expect(headers['x-policy-decision']).toBe('allow; unjudged=guardrail')
  expect(every.double.questions).toEqual([])
  expect(await received(every)).toBe('[]')
})

test('a caller that hangs up ends the question', patience, async () => {
  const every = await open({ deadline_ms: 10_000 })
  every.double.become('hangs')
  const address = await every.api.app.listen({ port: 0, host: '127.0.0.1' })
  const aborting = new AbortController()
  const { value: key } = await createProjectKey(every.api.house, every.api.organization)
  const call = fetch(`${address}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'claude-scripted',
      max_tokens: 100,
      stream: true,
      messages: [{ role: 'user', content: 'Hello' }],
    }),
    signal: aborting.signal,
  })
  await waitUntil(() => every.double.questions.length === 1)
  aborting.abort()
  await expect(call).rejects.toThrow(/abort/i)
  await waitUntil(() => every.double.cancelled === 1)
})

test(
  'neither the secret nor a text is in an event, in metrics or in a refusal',
  patience,
  async () => {
    const every = await open()
    const canary = 'canary-of-the-caller'
    const bodies: string[] = []
    for (const asked of [canary, `${canary} 555-1234`, `${canary} ${blockedWord}`]) {
      for (const way of usualWays)
        bodies.push((await every.send(way, { asked, answered: 'Fine.' })).body)
    }
    const events = JSON.stringify(await eventsOf(every))
    const metrics = await every.api.house.metrics.registry.metrics()
    for (const text of [events, metrics, ...bodies]) {
      expect(text).not.toContain(guardrailSecret)
      expect(text).not.toContain(canary)
    }
    expect(metrics).toContain('gatehouse_guardrail_questions_total{kind="operator"}')
  },
)
