import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { simulateGateway } from '@gatehouse/contract/policy-gateway/gateway'
import { hiddenScript } from '@gatehouse/tools/scripted-upstream/script'
import { stackModels } from '@gatehouse/tools/stack-models'
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
  textOf,
} from '#inference/enforcement/testing/open-redacting.ts'

// Values in JSON, divided over parts and blocks, and put back: on every way to a model.

const patience = { timeout: 300_000 }
const ways = everyWay.filter(({ caller }) => caller === 'key')
const answered = ways.filter(({ endpoint }) => !isCounting(endpoint))
const mail = 'jane@example.com'

test('answers in JSON stay JSON, and have no value left', patience, async () => {
  const every = await openRedacting()
  const values = {
    EMAIL: 'john.doe@example.com',
    CARD: '4111 1111 1111 1111',
    SSN: '123-45-6789',
    IBAN: 'DE89370400440532013000',
    IP: '203.0.113.7',
    SECRET: ['AKIA', 'IOSFODNN7EXAMPLE'].join(''),
  }
  const said = JSON.stringify({
    notes: Object.values(values).map((value) => `Contact:\n${value}`),
    card: 4111111111111111,
  })
  for (const way of answered) {
    const asked = `Go.\n${hiddenScript({ text: said })}`
    const { body } = await every.send(way, { asked })
    // A stream in Responses repeats its text at the end.
    expect(JSON.parse(textOf(body).slice(0, jsonLength)), nameOf(way)).toEqual({
      notes: Object.keys(values).map((kind) => `Contact:\n[${kind}_1]`),
      card: '[CARD_1]',
    })
  }
})

const jsonLength = JSON.stringify({
  notes: ['EMAIL', 'CARD', 'SSN', 'IBAN', 'IP', 'SECRET'].map((kind) => `Contact:\n[${kind}_1]`),
  card: '[CARD_1]',
}).length

test('results of tools are read as JSON before they leave', patience, async () => {
  const every = await openRedacting()
  const text = JSON.stringify({ note: `Contact:\n4111 1111 1111 1111`, to: mail })
  const result = { type: 'tool_result', tool_use_id: 't1', content: text }
  const call = { type: 'tool_use', id: 't1', name: 'read', input: {} }
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [call] },
    { role: 'user', content: [result] },
  ]
  for (const way of ways.filter(({ endpoint }) => endpoint.id === 'createMessage')) {
    expect((await every.send(way, { members: { messages } })).statusCode).toBe(200)
    const sent = await received(every)
    expect(sent, nameOf(way)).toContain(String.raw`Contact:\\n[CARD_1]`)
    expect(sent).not.toContain(mail)
  }
})

test('a simulation finds numbers with any dash', patience, async () => {
  const every = await openRedacting()
  for (const [kind, value] of [
    ['SSN', '123-45-6789'],
    ['PHONE', '212-555-0123'],
    ['CARD', '4111-1111-1111-1111'],
  ] as const) {
    for (const dash of ['-', '\u2010', '\u2011', '\u2013', '\u2212']) {
      const scenario = { text: `It is ${value.replaceAll('-', dash)}.` }
      const config = { rules: { redact: true } }
      const { body } = await every.api.send(simulateGateway, { body: { config, scenario } })
      expect(body, `U+${dash.charCodeAt(0).toString(16)}`).toMatchObject({
        redactions: [{ type: kind, replaced: 1 }],
      })
    }
  }
})

const partsOf = (texts: string[], type: string) => texts.map((text) => ({ type, text }))

/** A text in several parts of one message. */
function dividedIn({ endpoint }: Call, texts: string[]): object {
  if (endpoint.id === 'createResponse') {
    return { input: [{ role: 'user', content: partsOf(texts, 'input_text') }] }
  }
  return { messages: [{ role: 'user', content: partsOf(texts, 'text') }] }
}

test('a value that is divided over parts or messages reaches no model', patience, async () => {
  const every = await openRedacting()
  const texts = ['Write to jane.doe@exam', 'ple.com please']
  for (const way of ways) {
    const isResponses = way.endpoint.id === 'createResponse'
    const inRow = texts.map((content) => ({ role: 'user', content }))
    for (const members of [
      dividedIn(way, texts),
      isResponses ? { input: inRow } : { messages: inRow },
    ]) {
      expect((await every.send(way, { members })).statusCode, nameOf(way)).toBe(200)
      const sent = await received(every)
      if (isCounting(way.endpoint) && sent === '[]') continue
      expect(sent, nameOf(way)).toContain('Write to [EMAIL_1]')
      expect(sent, nameOf(way)).not.toMatch(/jane\.doe|ple\.com/)
    }
  }
})

test('callers get their values back, in texts and in arguments', patience, async () => {
  const every = await openRedacting({}, { rules: { redact_restore: true } })
  for (const way of answered) {
    const asked = (script: string) => `I am ${mail}.\n${script}`
    const text = hiddenScript({ text: 'To [EMAIL_1], not [EMAIL_2], but eve@example.com.' })
    const said = await every.send(way, { asked: asked(text) })
    expect(textOf(said.body), nameOf(way)).toContain(`To ${mail}, not [EMAIL_2], but [EMAIL_2].`)
    expect(Number(said.headers['x-policy-holdback'])).toBeGreaterThan(528)
    const toolCalls = [{ name: 'send', arguments: { to: '[EMAIL_1]', n: ['[EMAIL_2]'] } }]
    const called = await every.send(way, { asked: asked(hiddenScript({ toolCalls })) })
    expect(called.body, nameOf(way)).toContain('[EMAIL_2]')
    expect(called.body, nameOf(way)).not.toContain('[EMAIL_1]')
    const sent = await received(every)
    expect(sent).toContain('[EMAIL_1]')
    expect(sent, nameOf(way)).not.toContain(mail)
  }
  for (const [number, event] of (await eventsOf(every)).entries()) {
    const replaced = number % 2 === 0 ? 2 : 1
    expect(event['redactions']).toEqual([
      { type: 'EMAIL', replaced, withheld: 0, passed: 0, restored: 1 },
    ])
  }
})

/** An upstream of Messages that says these texts, each in a block. */
async function startBlocks(texts: string[]) {
  const events = [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
    ...texts.flatMap((text, index) => [
      { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]
  const stream = events.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`)
  const plain = JSON.stringify({ ...message, content: partsOf(texts, 'text') })
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const isStreamed = (JSON.parse(body) as { stream?: boolean }).stream === true
      response.setHeader('content-type', isStreamed ? 'text/event-stream' : 'application/json')
      response.end(isStreamed ? stream.join('') : plain)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'x',
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 1 },
}

test('a value that is divided over blocks of an answer reaches no caller', patience, async () => {
  const scripted = await startBlocks([
    'write to john.doe@exam',
    'ple.com or 4111 1111 ',
    '1111 1111.',
  ])
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-catalogue-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'models.json')
  await writeFile(file, JSON.stringify(stackModels({ scripted })))
  const every = await openRedacting({ MODELS_FILE: file })
  for (const way of answered.filter(({ model }) => model === 'claude-scripted')) {
    const { body, statusCode } = await every.send(way)
    expect(statusCode, nameOf(way)).toBe(200)
    expect(textOf(body), nameOf(way)).toContain('write to [EMAIL_1] or [CARD_1].')
  }
})
