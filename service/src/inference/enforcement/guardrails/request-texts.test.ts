import { describe, expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats } from '#formats/formats.ts'
import { readRequestTexts } from '#formats/texts/request-texts.ts'
import { richRequests } from '#inference/enforcement/testing/rich-requests.ts'
import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import { finish } from '#platform/steps/steps.ts'

import { readAskedRequest, rewriteRequest } from './request-texts.ts'

function read(format: CallerFormatName, body: Json) {
  const sent = finish(readRequestTexts(callerFormats[format].readTurn(body)))
  return { sent, asked: finish(readAskedRequest(body, sent)) }
}

const saidIn = (format: CallerFormatName, body: Json) =>
  read(format, body).asked.texts.map(({ role, text }) => [role, text])

/** Replaces a word wherever it is said. */
function replace(format: CallerFormatName, body: Json, word: string, replacement = '###') {
  const { asked } = read(format, body)
  const edits = asked.texts.map(({ text }) =>
    Array.from(text.matchAll(new RegExp(word, 'g')), ({ index }) => ({
      start: index,
      end: index + word.length,
      replacement,
    })),
  )
  return finish(rewriteRequest(body, asked, edits))
}

const formats = Object.keys(richRequests) as CallerFormatName[]

describe.each(formats)('a request of %s', (format) => {
  const body = richRequests[format]

  test('is asked about with all that rules see of it', () => {
    const { sent, asked } = read(format, body)
    const all = asked.texts.map(({ text }) => text).join('\n')
    for (const { parts } of sent.text) {
      for (const line of parts.flatMap((part) => part.split('\n'))) expect(all).toContain(line)
    }
    expect(all).toContain('I look.')
    expect(asked.texts.length).toBeGreaterThan(5)
  })

  test('stays as it is where nothing is rewritten', () => {
    expect(replace(format, body, 'a word that is not there')).toEqual(body)
  })

  test('can be rewritten in every place', () => {
    const { asked } = read(format, body)
    for (const [index, text] of asked.editable.entries()) {
      if (text.kind === 'json' || text.kind === 'name') continue
      const whole = asked.texts[index]?.text ?? ''
      const edits = asked.texts.map((_, at) =>
        at === index ? [{ start: 0, end: whole.length, replacement: 'REWRITTEN' }] : [],
      )
      const rewritten = finish(rewriteRequest(body, asked, edits))
      const json = JSON.stringify(rewritten)
      const base64 = Buffer.from('REWRITTEN').toString('base64')
      if (text.kind === 'text')
        expect(json.includes('REWRITTEN') || json.includes(base64)).toBe(true)
      expect(json).not.toBe(JSON.stringify(body))
      callerFormats[format].readTurn(rewritten)
    }
  })
})

test('roles are those of the speaker', () => {
  expect(
    saidIn('messages', {
      model: 'm',
      max_tokens: 1,
      system: 'Be kind.',
      tools: [{ name: 'look', description: 'Looks.', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: 'Hello' },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'Hi.' },
            { type: 'tool_use', id: 't', name: 'look', input: { at: 'it' } },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'Open.' }] },
      ],
    }),
  ).toEqual([
    ['system', 'Be kind.'],
    ['system', 'Looks.'],
    ['user', 'Hello'],
    ['assistant', 'Hi.'],
    ['assistant', '{"at":"it"}'],
    ['tool', 'Open.'],
    ['system', 'look\ntype\nobject'],
  ])
  expect(
    saidIn('chat_completions', {
      model: 'm',
      messages: [
        { role: 'developer', content: 'Be kind.' },
        { role: 'user', content: 'Hello' },
        {
          role: 'assistant',
          content: 'Hi.',
          tool_calls: [
            { id: 't', type: 'function', function: { name: 'look', arguments: '{"at":"it"}' } },
          ],
        },
        { role: 'tool', tool_call_id: 't', content: 'Open.' },
      ],
    }),
  ).toEqual([
    ['system', 'Be kind.'],
    ['user', 'Hello'],
    ['assistant', 'Hi.'],
    ['assistant', '{"at":"it"}'],
    ['tool', 'Open.'],
  ])
  expect(
    saidIn('responses', {
      model: 'm',
      instructions: 'Be kind.',
      input: [
        { role: 'user', content: 'Hello' },
        { type: 'function_call', call_id: 't', name: 'look', arguments: '{"at":"it"}' },
        { type: 'function_call_output', call_id: 't', output: 'Open.' },
      ],
    }),
  ).toEqual([
    ['system', 'Be kind.'],
    ['user', 'Hello'],
    ['assistant', '{"at":"it"}'],
    ['tool', 'Open.'],
  ])
  expect(saidIn('responses', { model: 'm', input: 'Hello' })).toEqual([['user', 'Hello']])
})

const withParts = (...texts: string[]): Json => ({
  model: 'm',
  messages: [{ role: 'user', content: texts.map((text) => ({ type: 'text', text })) }],
})

test('parts that their reader sees as one are one text, and are rewritten in their places', () => {
  const body = withParts('Call 12', '34 now', ' or later')
  expect(saidIn('chat_completions', body)).toEqual([['user', 'Call 12\n34 now or later']])
  expect(replace('chat_completions', body, '12\n34')).toEqual(
    withParts('Call ###', ' now', ' or later'),
  )
})

const withArguments = (json: string): Json => ({
  model: 'm',
  messages: [
    { role: 'user', content: 'Hello' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: json } }],
    },
    { role: 'tool', tool_call_id: 't', content: 'Done.' },
  ],
})

test('arguments of calls are rewritten, and stay JSON', () => {
  expect(replace('chat_completions', withArguments('{"to":"Jane"}'), 'Jane')).toEqual(
    withArguments('{"to":"###"}'),
  )
  expect(() => replace('chat_completions', withArguments('{"to":1234}'), '1234')).toThrow(
    expect.objectContaining({ problem: 'unwritable' }),
  )
})

test('sealed reasoning is left out where it would be rewritten', () => {
  const withThinking = (thinking: string): Json => ({
    model: 'm',
    max_tokens: 1,
    messages: [
      { role: 'user', content: 'Hello' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking, signature: 'c2ln' },
          { type: 'text', text: 'Hi.' },
        ],
      },
      { role: 'user', content: 'Go on' },
    ],
  })
  expect(replace('messages', withThinking('I know Jane.'), 'Jane')).toEqual(withThinking(''))
  expect(replace('messages', withThinking('I know her.'), 'Jane')).toEqual(
    withThinking('I know her.'),
  )
})

test('names of tools are asked about, and cannot be rewritten', () => {
  const body = {
    model: 'm',
    messages: [{ role: 'user', content: 'Hello' }],
    tools: [{ type: 'function', function: { name: 'jane_smith', parameters: {} } }],
  }
  expect(saidIn('chat_completions', body)).toContainEqual(['system', 'jane_smith'])
  expect(() => replace('chat_completions', body, 'jane')).toThrow(GuardrailFailure)
})
