import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { hiddenScript } from '@gatehouse/tools/scripted-upstream/script'
import { expect, onTestFinished, test } from 'vitest'

import {
  type Call,
  everyWay,
  isCounting,
  nameOf,
} from '#inference/enforcement/testing/every-way.ts'
import {
  eventsOf,
  openRedacting,
  received,
  save,
  textOf,
} from '#inference/enforcement/testing/open-redacting.ts'
import { createJudgeDouble, judges } from '#moderation/testing/judge-double.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'
import { harmless, planted } from '#redaction/testing/corpus.ts'

// Calls of an organization that redacts, on every way to a model.

const patience = { timeout: 300_000 }
const ways = everyWay.filter(({ caller }) => caller === 'key')
const answered = ways.filter(({ endpoint }) => !isCounting(endpoint))

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
    const asked = `Go.\n${hiddenScript({ text: said })}`
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

const mail = 'jane@example.com'

test('reasoning and refusals are redacted, and the arguments of tools pass', patience, async () => {
  const every = await openRedacting()
  const [thinking, refusal] = [`About ${mail}.`, `Not for ${mail}.`]
  for (const way of answered) {
    const script = hiddenScript({ thinking, refusal })
    expect((await every.send(way, { asked: `Go.\n${script}` })).body, nameOf(way)).not.toContain(
      mail,
    )
    const calls = hiddenScript({ toolCalls: [{ name: 'send', arguments: { to: mail } }] })
    const { body } = await every.send(way, { asked: `Go.\n${calls}` })
    expect(body, nameOf(way)).toMatch(/\bsend\b/)
  }
  const passed = (await eventsOf(every)).filter((_, number) => number % 2 === 1)
  for (const event of passed) {
    expect(event['redactions']).toEqual([{ type: 'EMAIL', replaced: 0, withheld: 0, passed: 1 }])
  }
})

test('a value has the same placeholder in the request and in its answer', patience, async () => {
  const every = await openRedacting()
  const script = hiddenScript({ text: `To joe@example.com, ${mail} and eve@example.com.` })
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
  const script = hiddenScript({ text: `Mail to ${mail}, and pay with 4111 1111 1111 1111.` })
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
  const script = hiddenScript({ text: `To ${mail}.` })
  for (const way of answered) {
    expect((await every.send(way, { asked: `Go.\n${script}` })).body).toContain('policy_blocked')
  }
})

test('nothing is redacted where the configuration does not enforce', patience, async () => {
  const part = { enabled: true, sample_percent: 100, targets: [] }
  const every = await openRedacting({}, { rollout: { shadow: part } })
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
