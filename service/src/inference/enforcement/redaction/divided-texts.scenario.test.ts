import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats } from '#formats/formats.ts'
import { cutText } from '#formats/testing/cut-text.ts'
import { finish } from '#platform/steps/steps.ts'
import { planted } from '#redaction/testing/corpus.ts'

import { CallRedaction, describeRedaction } from './call-redaction.ts'

// Texts of a request that are divided over parts and messages, and are one for the model.

const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)
console.log(`divided texts: seed ${seed}`)

function redact(request: Json) {
  const redaction = new CallRedaction()
  const body = finish(redaction.redactRequest(request)) ?? request
  return { body, found: describeRedaction(redaction.counts) }
}

type Shape = {
  format: CallerFormatName
  write(texts: readonly string[]): Json
  read(body: Json): string[]
}

const textsIn = (content: unknown) => (content as { text: string }[]).map(({ text }) => text)
const contentsIn = (messages: unknown) =>
  (messages as { content: string }[]).map(({ content }) => content)
const partsOf = (texts: readonly string[], type = 'text') => texts.map((text) => ({ type, text }))
const firstOf = (list: unknown) => (list as { content: unknown }[])[0]!.content
const call = { type: 'tool_use', id: 't1', name: 'read', input: {} }

const shapes: Record<string, Shape> = {
  'parts in Chat': {
    format: 'chat_completions',
    write: (texts) => ({ messages: [{ role: 'user', content: partsOf(texts) }] }),
    read: ({ messages }) => textsIn(firstOf(messages)),
  },
  'messages in Chat': {
    format: 'chat_completions',
    write: (texts) => ({ messages: texts.map((content) => ({ role: 'user', content })) }),
    read: ({ messages }) => contentsIn(messages),
  },
  'instructions in Chat': {
    format: 'chat_completions',
    write: (texts) => ({
      messages: texts.map((content, at) => ({ role: at % 2 ? 'system' : 'developer', content })),
    }),
    read: ({ messages }) => contentsIn(messages),
  },
  'the result of a tool in Chat': {
    format: 'chat_completions',
    write: (texts) => ({
      messages: [{ role: 'tool', tool_call_id: 'c1', content: partsOf(texts) }],
    }),
    read: ({ messages }) => textsIn(firstOf(messages)),
  },
  'parts in Messages': {
    format: 'messages',
    write: (texts) => ({ messages: [{ role: 'user', content: partsOf(texts) }] }),
    read: ({ messages }) => textsIn(firstOf(messages)),
  },
  'messages in Messages': {
    format: 'messages',
    write: (texts) => ({
      messages: texts.map((text) => ({ role: 'assistant', content: partsOf([text]) })),
    }),
    read: ({ messages }) =>
      (messages as { content: unknown }[]).flatMap(({ content }) => textsIn(content)),
  },
  'texts around calls in Messages': {
    format: 'messages',
    write: (texts) => ({
      messages: [{ role: 'assistant', content: partsOf(texts).flatMap((part) => [call, part]) }],
    }),
    read: ({ messages }) =>
      textsIn((firstOf(messages) as { type: string }[]).filter(({ type }) => type === 'text')),
  },
  'the system prompt of Messages': {
    format: 'messages',
    write: (texts) => ({ system: partsOf(texts), messages: [{ role: 'user', content: 'Go.' }] }),
    read: ({ system }) => textsIn(system),
  },
  'the result of a tool in Messages': {
    format: 'messages',
    write: (texts) => ({
      messages: [
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 't1', content: partsOf(texts) }],
        },
      ],
    }),
    read: ({ messages }) => textsIn((firstOf(messages) as { content: unknown }[])[0]!.content),
  },
  'parts in Responses': {
    format: 'responses',
    write: (texts) => ({ input: [{ role: 'user', content: partsOf(texts, 'input_text') }] }),
    read: ({ input }) => textsIn(firstOf(input)),
  },
  'items in Responses': {
    format: 'responses',
    write: (texts) => ({
      input: texts.map((text) => ({
        type: 'message',
        role: 'assistant',
        content: partsOf([text], 'output_text'),
      })),
    }),
    read: ({ input }) =>
      (input as { content: unknown }[]).flatMap(({ content }) => textsIn(content)),
  },
  'the result of a tool in Responses': {
    format: 'responses',
    write: (texts) => ({
      input: [
        {
          type: 'custom_tool_call_output',
          call_id: 'c1',
          output: partsOf(texts, 'input_text'),
        },
      ],
    }),
    read: ({ input }) => textsIn((input as { output: unknown }[])[0]!.output),
  },
}

describe.each(Object.entries(shapes))('%s', (_, { format, write, read }) => {
  test('a value is replaced once, where it begins', () => {
    const { body, found } = redact(write(['Write to jane.doe@exam', 'ple.com please']))
    expect(read(body)).toEqual(['Write to [EMAIL_1]', ' please'])
    expect(found).toEqual([{ type: 'EMAIL', replaced: 1, withheld: 0, passed: 0 }])
    expect(read(redact(write(['Pay with 4111 1111 ', '1111', ' 1111.', '']))['body'])).toEqual([
      'Pay with [CARD_1]',
      '\u2026',
      '.',
      '',
    ])
  })

  test('it is found with a line break between parts, and without any', () => {
    expect(read(redact(write(['card 4111 1111', '1111 1111', 'and more'])).body)).toEqual([
      'card [CARD_1]',
      '\u2026',
      'and more',
    ])
    // Each of these is a value only if nothing follows it at once.
    const alone = ['10.0.0.1', '123-45-6789', '5 apples']
    expect(read(redact(write(alone)).body)).toEqual(['[IP_1]', '[SSN_1]', '5 apples'])
  })

  test('the corpus in any parts: nothing is left of it, and no text is empty', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...planted),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }),
        ([text, kind], lengths) => {
          const parts = cutText(`It is: ${text} .`, lengths)
          const { body } = redact(write(parts))
          const left = read(body)
          expect(left.join('').replaceAll('\u2026', '')).toContain(`[${kind}_`)
          for (const [at, part] of left.entries()) {
            expect(part.trim() === '').toBe(parts[at]!.trim() === '')
          }
          // What is left has as many parts, and is a request.
          expect(left).toHaveLength(parts.length)
          callerFormats[format].readTurn({ model: 'm', ...body })
        },
      ),
      { numRuns: 100, seed },
    )
  })
})

test('parts keep their members, and images and other speakers divide texts', () => {
  const [mail, rest] = ['jane@exam', 'ple.com']
  const image = { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } }
  const marked = { type: 'text', text: rest, cache_control: { type: 'ephemeral' } }
  const contentOf = (content: unknown[]) =>
    firstOf(redact({ messages: [{ role: 'user', content }] }).body['messages'])
  expect(contentOf([...partsOf([mail]), marked])).toEqual([
    ...partsOf(['[EMAIL_1]']),
    { ...marked, text: '\u2026' },
  ])
  const divided = [...partsOf([mail]), image, marked]
  expect(contentOf(divided)).toEqual(divided)
  const messages = [
    { role: 'user', content: mail },
    { role: 'assistant', content: rest },
    { role: 'tool', tool_call_id: 'c1', content: mail },
    { role: 'tool', tool_call_id: 'c2', content: rest },
  ]
  expect(redact({ messages }).body).toEqual({ messages })
})

test('numbers follow the order of the request', () => {
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a@a.com' },
        { type: 'x', title: 'b@a.com' },
      ],
    },
    { role: 'user', content: 'c@a.com' },
  ]
  expect(JSON.stringify(redact({ messages }).body)).toMatch(/EMAIL_1.*EMAIL_2.*EMAIL_3/)
})

test('names of speakers, users, metadata and stop sequences are redacted', () => {
  const mail = 'jane@example.com'
  const card = '4111111111111111'
  const tool = { role: 'function', name: 'jane@example.com', content: 'x' }
  const asked = (value: string, name: string, other: string) => ({
    model: 'm',
    messages: [{ role: 'user', name, content: 'Go.' }, tool],
    user: value,
    safety_identifier: value,
    metadata: { mail: value, user_id: other },
    stop: [value, 'END'],
    stop_sequences: [value],
    tool_choice: { type: 'function', function: { name: mail } },
  })
  expect(redact(asked(mail, mail, card)).body).toEqual(asked('[EMAIL_1]', 'EMAIL_1', '[CARD_1]'))
  expect(redact({ messages: [], stop: mail }).body).toEqual({ messages: [], stop: '[EMAIL_1]' })
})
