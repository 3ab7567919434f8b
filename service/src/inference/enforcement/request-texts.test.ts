import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats } from '#formats/formats.ts'
import { type EarlierAnswer, readRequestTexts } from '#formats/texts/request-texts.ts'
import { stringPlacesIn } from '#formats/texts/testing/string-places.ts'
import { emptyTurn, type Part, type TurnMessage } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'
import { finish } from '#platform/steps/steps.ts'
import { type Passage, readingsOf, textOf } from '#text/passage.ts'

import { richRequests } from './testing/rich-requests.ts'

// A canary takes the place of each string of a request, one at a time. It must be found in a text, unless its member
// is listed here or the request is refused.

const names = ['messages', 'responses', 'chat_completions'] as const

const fixed = 'chosen from a fixed list'
const setting = 'a setting of the call'
const encoded = 'encrypted or binary: no rule can read it'

const noText: Record<CallerFormatName, Record<string, string>> = {
  messages: {
    model: setting,
    'system[].type': fixed,
    'messages[].role': fixed,
    'messages[].content[].source.type': fixed,
    'messages[].content[].source.data': encoded,
    'messages[].content[].source.content[].type': fixed,
    'messages[].content[].content[].type': fixed,
  },
  responses: {
    model: setting,
    'input[].content[].file_data': encoded,
  },
  chat_completions: {
    model: setting,
    'messages[].role': fixed,
    'messages[].content[].file.file_data': encoded,
    'messages[].content[].input_audio.data': encoded,
  },
}

/** The members where the canary is not found; those of a request that is refused do not count. */
function missedPlaces(format: CallerFormatName, canary: string): string[] {
  const missed = new Set<string>()
  for (const { path, replaceWith } of stringPlacesIn(richRequests[format])) {
    const texts = tryToRead(format, replaceWith(canary) as Json)
    if (texts && !texts.some((text) => text.includes(canary))) missed.add(path)
  }
  return [...missed].toSorted()
}

function tryToRead(format: CallerFormatName, request: Json): string[] | undefined {
  try {
    const { text, history } = finish(readRequestTexts(callerFormats[format].readTurn(request)))
    return [...linesOf(text), ...historyOf(history)]
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

test.each(names)(
  '%s: a sentence is found wherever it stands, but for the listed members',
  (name) => {
    expect(missedPlaces(name, 'a canary sings')).toEqual(Object.keys(noText[name]).toSorted())
  },
)

/** What looks like an id or a setting there is one. */
const idOrSetting =
  /(^|[._])(type|id|user|effort|summary|display|detail|format|signature|media_type|data|encrypted_content|clear_at)$|^tool_choice\.|^messages\[\]\.name$/

test.each(names)('%s: a word is found, but for ids and settings too', (name) => {
  const isExpected = (path: string) => Object.hasOwn(noText[name], path) || idOrSetting.test(path)
  expect(missedPlaces(name, 'canary7f3a').filter((path) => !isExpected(path))).toEqual([])
})

const linesOf = (passages: readonly Passage[]) => passages.map(textOf)
const partsOf = (passages: readonly Passage[]) => passages.flatMap(({ parts }) => parts)
const historyOf = (history: readonly EarlierAnswer[]) =>
  history.flatMap(({ said }) => linesOf(said))

const readRich = (format: CallerFormatName) =>
  finish(readRequestTexts(callerFormats[format].readTurn(richRequests[format])))

test.each(names)('%s: what is said stands with those who said it', (format) => {
  const { role, hasUnreadable, ...texts } = readRich(format)
  const [text, lastMessage] = [partsOf(texts.text), partsOf(texts.lastMessage)]
  const [system, history] = [partsOf(texts.system), historyOf(texts.history)]
  expect(text).toEqual(expect.arrayContaining(['Look:', 'It is open.', 'And now?']))
  expect(lastMessage).toContain('And now?')
  expect(lastMessage).not.toContain('Look:')
  expect(system[0]).toBe('You keep the gate.')
  expect(history).toEqual(expect.arrayContaining(['I look.', 'Hm.', 'look', 'place']))
  expect(text).toContain('You keep the gate.')
  for (const said of ['I look.', 'Hm.']) expect(text).not.toContain(said)
  expect([role, hasUnreadable]).toEqual(['user', true])
})

const says = (text: string): Part => ({ type: 'text', text })

const turnOf = (...messages: [TurnMessage['role'], ...Part[]][]) => ({
  ...emptyTurn,
  messages: messages.map(([role, ...parts]) => ({ role, parts })),
})

test('foreign parts and results are judged in a message of any role', () => {
  const foreign: Part = { type: 'foreign', text: '{"type":"x","words":{"a key":"a value"}}' }
  const result: Part = {
    type: 'tool_result',
    callId: 'c',
    parts: [{ type: 'text', text: 'a result' }],
    isError: false,
  }
  const { text, history, lastMessage, role } = finish(
    readRequestTexts(turnOf(['user', { type: 'text', text: 'a' }], ['assistant', foreign, result])),
  )
  expect(linesOf(text)).toEqual(expect.arrayContaining(['a key', 'a value', 'a result']))
  expect([history, linesOf(lastMessage), role]).toEqual([[], ['a'], 'assistant'])
})

test('a file is read where its bytes are text, whatever it is called, and noted otherwise', () => {
  const file = (mediaType: string, bytes: Buffer): Part => ({
    type: 'document',
    source: { type: 'base64', mediaType, data: bytes.toString('base64') },
    title: null,
  })
  const read = (part: Part) => {
    const { text, hasUnreadable } = finish(readRequestTexts(turnOf(['user', part])))
    return [linesOf(text), hasUnreadable]
  }
  expect(read(file('text/csv', Buffer.from('words')))).toEqual([['words'], false])
  expect(read(file('application/pdf', Buffer.from('words')))).toEqual([['words'], false])
  expect(read(file('text/plain', Buffer.from([0x77, 0xff, 0xfe])))).toEqual([[], true])
})

test('data in a foreign part is noted and not taken for text', () => {
  const foreign: Part = { type: 'foreign', text: '{"source":{"data":"AAAA"}}' }
  const { text, hasUnreadable } = finish(readRequestTexts(turnOf(['user', foreign])))
  expect([linesOf(text), hasUnreadable]).toEqual([['source', 'data'], true])
})

test('a tool is one text, and the arguments of a call are their strings', () => {
  const call: Part = { type: 'tool_call', id: 'c', name: 'f', arguments: '{"a":"b\\u006fmb"}' }
  const tool = { name: 'f', description: null, parameters: { q: { type: 'r' } }, isStrict: null }
  const { text, history } = finish(
    readRequestTexts({
      ...turnOf(['assistant', call], ['user', says('x')]),
      tools: [tool],
    }),
  )
  expect(linesOf(text)).toEqual(['x', 'f\nq\ntype\nr'])
  expect(historyOf(history)).toEqual(['f', 'a', 'bomb', 'a bomb'])
})

test('the beginning of an answer that the caller writes is no history', () => {
  const { text, history, lastMessage, prefill } = finish(
    readRequestTexts(
      turnOf(
        ['user', says('one')],
        ['assistant', says('two')],
        ['user', says('three')],
        ['assistant', says('four')],
      ),
    ),
  )
  expect(linesOf(text)).toEqual(['one', 'three', 'four'])
  expect([historyOf(history), linesOf(lastMessage)]).toEqual([['two'], ['three']])
  expect([prefill, linesOf(history[0]?.question ?? [])]).toEqual(['four', ['one']])
})

test('instructions between messages belong to the system prompt, and divide what stands around them', () => {
  const texts = finish(
    readRequestTexts({
      ...turnOf(
        ['user', says('one')],
        ['assistant', says('two')],
        ['system', says('the ru'), says('le')],
        ['assistant', says('three')],
        ['user', says('four')],
        ['assistant', says('five')],
        ['system', says('six')],
      ),
      system: ['zero'],
    }),
  )
  expect(texts.system.map(readingsOf)).toEqual([
    ['zero'],
    ['the ru', 'le', 'the ru\nle', 'the rule'],
    ['six'],
  ])
  expect(texts.system.map(({ message }) => message)).toEqual([null, 2, 6])
  expect(linesOf(texts.text)).toEqual(['zero', 'one', 'the ru\nle', 'four', 'six'])
  expect([texts.userText, texts.lastMessage].map(linesOf)).toEqual([['one', 'four'], ['four']])
  // What follows an answer makes it an earlier one: the model does not go on with it.
  expect([historyOf(texts.history), texts.prefill]).toEqual([['two', 'three', 'five'], ''])
  expect(texts.role).toBe('assistant')
})

test('messages of the assistant at the end are one beginning, however many there are', () => {
  const { text, history, prefill } = finish(
    readRequestTexts(
      turnOf(['user', says('one')], ['assistant', says('a kum')], ['assistant', says('quat ')]),
    ),
  )
  expect([linesOf(text), history, prefill]).toEqual([['one', 'a kum\nquat '], [], 'a kumquat '])
})

test('parts of a message, and messages of one role in a row, are one text', () => {
  const { text, lastMessage } = finish(
    readRequestTexts(turnOf(['user', says('The secret w'), says('ord')], ['user', says(' is?')])),
  )
  expect(text.map(readingsOf)).toEqual([
    ['The secret w', 'ord', ' is?', 'The secret w\nord is?', 'The secret word is?'],
  ])
  expect(linesOf(lastMessage)).toEqual([' is?'])
})

test.each([
  ['an empty text', [says('')]],
  ['nothing', []],
  ['reasoning', [{ type: 'reasoning' as const, text: 'Hm.', opaque: null }]],
])('a message of the assistant with %s does not divide what stands around it', (_, parts) => {
  const { text } = finish(
    readRequestTexts(
      turnOf(['user', says('project fal')], ['assistant', ...parts], ['user', says('con')]),
    ),
  )
  expect(text.flatMap(readingsOf)).toContain('project falcon')
})

test('what the caller has begun is no history because it sends an empty message after it', () => {
  const { prefill, history } = finish(
    readRequestTexts(
      turnOf(['user', says('hi')], ['assistant', says('I think')], ['user', says('')]),
    ),
  )
  expect([prefill, history]).toEqual(['I think', []])
})

test('a request with very many parts is read in time', () => {
  const many = Array.from({ length: 100_000 }, () => ['user', says('some words')] as const)
  const startedMs = performance.now()
  const { text } = finish(
    readRequestTexts(turnOf(...many.map(([role, part]): ['user', Part] => [role, part]))),
  )
  expect(text).toHaveLength(1)
  // Joining them one after the other would take minutes.
  expect(performance.now() - startedMs).toBeLessThan(5000)
})
