import { CreateChatCompletion } from '@gatehouse/contract/chat-completion'
import { CreateMessage } from '@gatehouse/contract/message'
import { CreateResponse } from '@gatehouse/contract/response'
import { describe, expect, test } from 'vitest'

import { ApiError } from '#platform/api-error.ts'
import { finish } from '#platform/steps/steps.ts'
import { readingsOf } from '#text/passage.ts'

import type { Json } from './answer.ts'
import { fieldTables } from './fields/field-tables.ts'
import { removeFields } from './fields/remove-fields.ts'
import type { CallerFormatName } from './format-name.ts'
import { callerFormats, upstreamFormats } from './formats.ts'
import { isObject } from './json-values.ts'
import { fullRequests } from './testing/full-requests.ts'
import { readRequestTexts } from './texts/request-texts.ts'
import type { Turn } from './turn.ts'

// What is sent to a model is what was judged. A sentence takes the place of each string of a request, one at a time, and
// stands in an unknown member, in each of its objects. Each time it is read, or the request is refused, or no
// upstream gets it.

const schemas = {
  messages: CreateMessage,
  responses: CreateResponse,
  chat_completions: CreateChatCompletion,
}
const names = ['messages', 'responses', 'chat_completions'] as const
const sentence = 'a canary sings'
const word = 'canary7f3a'

const encoded =
  'base64: it is read where it is a text, and otherwise noted as a part that nothing can score'

/** Members that an upstream gets although no check reads them. */
const unread: Record<CallerFormatName, Record<string, string>> = {
  messages: { 'messages[].content[].source.data': encoded },
  responses: { 'input[].content[].file_data': encoded },
  chat_completions: {
    'messages[].content[].file.file_data': encoded,
    'messages[].content[].input_audio.data': encoded,
  },
}

const schema = { type: 'object', description: 'A gate.' }

/** Other forms of some members. */
const variants: Record<CallerFormatName, Json[]> = {
  messages: [
    { system: 'You keep the gate.', tool_choice: { type: 'any' }, thinking: { type: 'adaptive' } },
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'Look.', image_url: 'x' }] }] },
  ],
  responses: [
    { input: 'Look.', tool_choice: 'auto' },
    {
      tool_choice: {
        type: 'allowed_tools',
        mode: 'auto',
        tools: [{ type: 'function', name: 'look' }],
      },
      text: { format: { type: 'text', name: 'gate', schema } },
    },
    {
      tool_choice: { type: 'mcp', server_label: 'gate', name: 'look' },
      input: [
        { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] },
        { role: 'user', content: [{ type: 'input_text', text: 'Look.', image_url: 'x' }] },
        { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}', input: 'Beside.' },
        { type: 'compaction', encrypted_content: 'ZW5j', note: 'Old.' },
      ],
    },
  ],
  chat_completions: [
    { tool_choice: { type: 'function', function: { name: 'look' } }, stop: 'END' },
    { tool_choice: { type: 'custom', custom: { name: 'patch' } }, stop: null },
    { tool_choice: 'auto', response_format: { type: 'text', json_schema: { name: 'g', schema } } },
    {
      messages: [
        { role: 'user', content: 'Look.' },
        { role: 'assistant', content: 'I look.', reasoning: 'Hm.' },
      ],
    },
    { logit_bias: { 'gate keeper': 1 }, tool_choice: null, function_call: 'auto' },
  ],
}
const requestsOf = (format: CallerFormatName): Json[] =>
  [{}, ...variants[format]].map((changes) => ({ ...fullRequests[format], ...changes }))

/** A request with a canary in one place. */
type Place = { path: string; request: Json; canary: string }

function readTurn(format: CallerFormatName, request: Json): Turn | null {
  if (!schemas[format].safeParse(request).success) return null
  try {
    return callerFormats[format].readTurn(request)
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

function isRead(turn: Turn, canary: string): boolean {
  const { text, history, images } = finish(readRequestTexts(turn))
  const passages = [...text, ...history.flatMap(({ said }) => said)]
  return [...passages.flatMap(readingsOf), ...images].some((each) => each.includes(canary))
}

const target = {
  model: 'theirs',
  maxOutputTokens: 100,
  outputLimitMember: 'max_completion_tokens',
} as const

/** Whether any upstream gets it, of the caller's format or of another. */
function isSent(format: CallerFormatName, { request, canary }: Place, turn: Turn): boolean {
  const options = { passesUnknown: true, keepsCacheTtl: true }
  const kept = removeFields(fieldTables[format], { request, headers: {} }, options)
  const bodies = [...upstreamFormats.values()].map((upstream) =>
    upstream.name === format
      ? upstream.forwardRequest?.(kept.request, target)
      : upstream.writeRequest(turn, target),
  )
  return JSON.stringify(bodies).includes(canary)
}

function isUnseen(format: CallerFormatName, place: Place): boolean {
  const turn = readTurn(format, place.request)
  return turn !== null && !isRead(turn, place.canary) && isSent(format, place, turn)
}

type Changed = { path: string; value: unknown }

/** The value with each value inside of it, and itself, changed one at a time. */
function changeEach(value: unknown, change: (value: unknown) => unknown): Changed[] {
  const changed = change(value)
  const here = changed === undefined ? [] : [{ path: '', value: changed }]
  if (typeof value !== 'object' || value === null) return here
  const inside = Object.entries(value).flatMap(([key, inner]) =>
    changeEach(inner, change).map((place) => ({
      path: Array.isArray(value) ? `[]${place.path}` : `.${key}${place.path}`,
      value: Array.isArray(value)
        ? value.with(Number(key), place.value)
        : { ...value, [key]: place.value },
    })),
  )
  return [...here, ...inside]
}

const placesOf = (
  format: CallerFormatName,
  canary: string,
  change: (value: unknown) => unknown,
): Place[] =>
  requestsOf(format)
    .flatMap((request) => changeEach(request, change))
    .map(({ path, value }) => ({ path: path.replace(/^\./, ''), request: value as Json, canary }))

const unseenOf = (format: CallerFormatName, places: readonly Place[]) => [
  ...new Set(places.filter((place) => isUnseen(format, place)).map(({ path }) => path)),
]

describe.each(names)('%s', (format) => {
  test('the requests are understood', () => {
    for (const request of requestsOf(format)) {
      expect(schemas[format].safeParse(request).error).toBeUndefined()
      expect(readTurn(format, request)).not.toBeNull()
    }
  })

  test('a sentence in the place of any string is read, refused or not sent', () => {
    const places = placesOf(format, sentence, (value) =>
      typeof value === 'string' ? sentence : undefined,
    )
    expect(unseenOf(format, places).toSorted()).toEqual(Object.keys(unread[format]).toSorted())
  })

  test.each([
    ['a sentence', sentence],
    ['a list', [sentence]],
    ['an object', { words: sentence }],
    ['an object like a part', { type: 'text', text: sentence }],
  ])('so is %s in the place of any value', (_, instead) => {
    const unseen = unseenOf(
      format,
      placesOf(format, sentence, (value) =>
        isObject(value) && 'model' in value ? undefined : instead,
      ),
    )
    expect(unseen.filter((path) => !Object.hasOwn(unread[format], path))).toEqual([])
  })

  test.each([
    ['a sentence', sentence, 'not_invented', sentence],
    ['a word', word, 'not_invented', word],
    ['a list', sentence, 'not_invented', [sentence]],
    ['an object', word, 'not_invented', { deep: { words: word } }],
    ['its name', sentence, sentence, true],
  ])('so is an unknown member of any object: %s', (_, canary, name, member) => {
    const places = placesOf(format, canary, (value) =>
      isObject(value) ? { ...value, [name]: member } : undefined,
    )
    expect(places.length).toBeGreaterThan(40)
    expect(unseenOf(format, places)).toEqual([])
  })
})

test('ids and settings are no texts, and what people write beside the conversation is', () => {
  const othersOf = (format: CallerFormatName) => readTurn(format, fullRequests[format])?.other
  expect(othersOf('messages')).toEqual(['END'])
  const metadata = ['topic', 'gates']
  const described = ['session_id', 'turn', '0199-aa', '{"workspaces":{}}']
  const tokens = ['I', 'We']
  expect(othersOf('responses')).toEqual([...tokens, 'namespace', 'gate', ...metadata, ...described])
  const unreadCall = ['{}', 'name', 'input', 'patch', 'Both.']
  expect(othersOf('chat_completions')).toEqual([...unreadCall, 'END', ...metadata])
})

const othersOfUser = (user_id: string) =>
  readTurn('messages', { ...fullRequests.messages, metadata: { user_id } })?.other

test('an id that is none is read: it is too long, or has words in it', () => {
  for (const id of ['user_01-a.b:c/d|e+f=~#', 'x'.repeat(160), '']) {
    expect(othersOfUser(id)).toEqual(['END'])
  }
  for (const id of ['jane@example.org', 'x'.repeat(161), '{"id":"a"}', 'a b', 'ключ']) {
    expect(othersOfUser(id)).toEqual(['END', id])
  }
})

test('the random part of an id is not read', () => {
  const uuid = '0199a3e1-7c1d-7f00-8a00-4111111111ab'
  const hash = '4111111111111111'.repeat(4)
  expect(othersOfUser(`user_${hash}_account_${uuid}_session_${uuid}`)).toEqual(['END'])
  const user = JSON.stringify({ device_id: hash, session_id: uuid, note: 'Hi there.' })
  expect(othersOfUser(user)).toEqual(['END', '{"device_id":"","session_id":"","note":"Hi there."}'])
})

test('other texts are read in a request that is nested more deeply than the stack allows', () => {
  let deep: unknown = sentence
  for (let level = 0; level < 100_000; level++) deep = [deep]
  const request = { ...fullRequests.chat_completions, metadata: { deep } }
  expect(callerFormats.chat_completions.readTurn(request).other).toContain(sentence)
})
