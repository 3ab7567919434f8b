import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AnswerEvent, Json, Piece } from '#formats/answer.ts'
import { cutText } from '#formats/testing/cut-text.ts'
import { toEvents } from '#formats/testing/said-events.ts'
import { finish } from '#platform/steps/steps.ts'
import { harmless, planted } from '#redaction/testing/corpus.ts'

import { CallRedaction, describeRedaction } from './call-redaction.ts'
import { TextRestorer } from './restore-text.ts'

// Calls whose caller gets its own values back.

const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)
const asker = { owner: 'org_1', signal: new AbortController().signal }

async function* piecesOf(events: readonly AnswerEvent[]): AsyncGenerator<Piece> {
  const source = { event: '', data: '', json: {}, bytes: Buffer.alloc(0) }
  for (const event of events) yield { format: 'messages', frames: [{ events: [event], source }] }
}

async function textsOf(pieces: AsyncIterable<Piece>): Promise<string[]> {
  const texts: string[] = []
  for await (const { frames } of pieces) {
    for (const event of frames.flatMap(({ events }) => events)) {
      if (event.type === 'block_started') texts[event.index] = ''
      if (event.type === 'block_delta') texts[event.index] += event.text
    }
  }
  return texts
}

const ask = (redaction: CallRedaction, content: string): string => {
  const request = { messages: [{ role: 'user', content }] }
  const body = (finish(redaction.redactRequest(request)) ?? request) as typeof request
  return body.messages[0]!.content
}

/** As the guard of an answer does it. */
const restored = (redaction: CallRedaction, events: Parameters<typeof piecesOf>[0]) =>
  redaction.restoreAnswer(redaction.redactAnswer(piecesOf(events), asker))

type Said = { type: string; pieces: string[] }
const answer = (redaction: CallRedaction, said: Said[]) =>
  textsOf(restored(redaction, toEvents(said)))

test('texts and arguments get the values back, and other placeholders stay', async () => {
  const redaction = new CallRedaction({ restores: true })
  const asked = ask(redaction, 'I am Jane@Example.com, jane@example.com, card 4111-1111-1111-1111.')
  expect(asked).toBe('I am [EMAIL_1], [EMAIL_1], card [CARD_1].')
  const said = [
    { type: 'text', pieces: ['To [EMA', 'IL_1]', ', [EMAIL_2], [CARD_1], [X_1], eve@a.com ['] },
    { type: 'tool_call', pieces: ['{"to":"[EMAIL', '_1]","card":[CARD_1', '],"n":["[EMAIL_9]"]}'] },
    { type: 'refusal', pieces: ['No [EMAIL_1]'] },
    { type: 'reasoning', pieces: ['Hm, [EMAIL_1].'] },
  ]
  expect(await answer(redaction, said)).toEqual([
    // The last address was never the caller's.
    'To Jane@Example.com, [EMAIL_2], 4111-1111-1111-1111, [X_1], [EMAIL_2] [',
    '{"to":"Jane@Example.com","card":"4111-1111-1111-1111","n":["[EMAIL_9]"]}',
    'No Jane@Example.com',
    'Hm, [EMAIL_1].',
  ])
  expect(describeRedaction(redaction.counts)).toEqual([
    { type: 'EMAIL', replaced: 3, withheld: 0, passed: 0, restored: 3 },
    { type: 'CARD', replaced: 1, withheld: 0, passed: 0, restored: 2 },
  ])
})

test('nothing is put back unless that is asked for', async () => {
  const redaction = new CallRedaction()
  ask(redaction, 'I am jane@example.com.')
  expect(await answer(redaction, [{ type: 'text', pieces: ['To [EMAIL_1].'] }])).toEqual([
    'To [EMAIL_1].',
  ])
  expect(describeRedaction(redaction.counts)).toEqual([
    { type: 'EMAIL', replaced: 1, withheld: 0, passed: 0 },
  ])
})

test('a stop sequence is told as the caller has written it', async () => {
  const redaction = new CallRedaction({ restores: true })
  expect(finish(redaction.redactRequest({ messages: [], stop: ['jane@a.com'] }))).toEqual({
    messages: [],
    stop: ['[EMAIL_1]'],
  })
  const events = toEvents([]).map((event) =>
    event.type === 'finished' ? { ...event, stopSequence: '[EMAIL_1]' } : event,
  )
  const left: unknown[] = []
  for await (const { frames } of restored(redaction, events)) {
    left.push(...frames.flatMap((frame) => frame.events))
  }
  expect(left.at(-1)).toMatchObject({ type: 'finished', stopSequence: 'jane@a.com' })
})

test('a value is escaped in JSON, and only there', () => {
  const restorer = () =>
    new TextRestorer({
      spellings: new Map([
        ['[SECRET_1]', 'a"b\\c\nd'],
        ['[CARD_1]', '4111111111111111'],
      ]),
      longest: 10,
      onRestored: () => undefined,
    })
  const restore = (text: string) => {
    const one = restorer()
    return one.push(text) + one.end()
  }
  expect(JSON.parse(restore('{"key":"x [SECRET_1]","card":[CARD_1],"all":[[SECRET_1]]}'))).toEqual({
    key: 'x a"b\\c\nd',
    card: 4111111111111111,
    all: ['a"b\\c\nd'],
  })
  expect(restore('[SECRET_1], [CARD_1]')).toBe('a"b\\c\nd, 4111111111111111')
  expect(restore('[1] [CARD_1]: [SECRET_1]')).toBe('[1] 4111111111111111: a"b\\c\nd')
})

/** Whatever a caller sends back of earlier calls. */
const history = (value: string): Json => ({
  messages: [
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 't1', name: 'send', input: { to: [value], n: 1 } }],
      tool_calls: [
        {
          id: 'c1',
          type: 'function',
          function: { name: 'send', arguments: JSON.stringify({ to: value }) },
        },
      ],
    },
  ],
  input: [
    { type: 'function_call', call_id: 'c1', name: 'send', arguments: JSON.stringify([value]) },
  ],
})

test('the arguments of earlier calls are redacted with it, and pass without', () => {
  const mail = 'jane@example.com'
  const redact = (restores: boolean, request: Json) =>
    finish(new CallRedaction({ restores }).redactRequest(request)) ?? request
  expect(redact(true, history(mail))).toEqual(history('[EMAIL_1]'))
  expect(redact(false, history(mail))).toEqual(history(mail))
  const card = { type: 'tool_use', id: 't', name: 'pay', input: { card: 4111111111111111, n: 2 } }
  expect(redact(true, { messages: [card] })).toEqual({
    messages: [{ ...card, input: { card: '[CARD_1]', n: 2 } }],
  })
})

const someText = fc
  .array(fc.constantFrom(...planted.map(([text]) => text), ...harmless, '\n', '"', '\\'), {
    minLength: 1,
    maxLength: 5,
  })
  .map((texts) => texts.join(' ; '))
const someLengths = fc.array(fc.integer({ min: 1, max: 15 }), { minLength: 1 })

test(
  'the model sees no value, and the caller gets its own text back',
  { timeout: 60_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(someText, someLengths, async (text, lengths) => {
        const redaction = new CallRedaction({ restores: true })
        const seen = ask(redaction, text)
        const spoken = `It is ${seen}`
        const said = [
          { type: 'text', pieces: cutText(spoken, lengths) },
          { type: 'tool_call', pieces: cutText(JSON.stringify({ seen }), lengths) },
        ]
        for (const [value, kind] of planted) {
          if (text.includes(value)) expect(seen).toContain(`[${kind}_`)
          expect(seen).not.toContain(value)
        }
        const [whole, json] = await answer(redaction, said)
        // A value that is written in two ways comes back in the first.
        const isAsWritten = (one: string) => one.replaceAll(/[^a-z0-9]/gi, '').toLowerCase()
        const expected = isAsWritten(text.normalize('NFKC'))
        expect(isAsWritten(whole!.normalize('NFKC'))).toBe(`itis${expected}`)
        const { seen: back } = JSON.parse(json!) as { seen: string }
        expect(isAsWritten(back.normalize('NFKC'))).toBe(expected)
      }),
      { numRuns: 300, seed },
    )
    console.log(`restored calls: seed ${seed}`)
  },
)
