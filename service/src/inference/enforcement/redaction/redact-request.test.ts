import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats } from '#formats/formats.ts'
import type { ContentPart, OutputFormat, Part, Turn } from '#formats/turn.ts'
import { richRequests } from '#inference/enforcement/testing/rich-requests.ts'
import { parseExact } from '#platform/exact-json.ts'
import { finish } from '#platform/steps/steps.ts'
import { createPlaceholders } from '#redaction/placeholders.ts'
import { harmless, planted } from '#redaction/testing/corpus.ts'
import { redactText } from '#redaction/text-redactor.ts'

import { CallRedaction, describeRedaction } from './call-redaction.ts'

const mail = 'jane@example.com'

function redact(format: CallerFormatName, request: Json) {
  const redaction = new CallRedaction()
  const body = finish(redaction.redactRequest(request))
  const turn = callerFormats[format].readTurn(body ?? request)
  return { body, turn, found: describeRedaction(redaction.counts) }
}
const bodyOf = (format: CallerFormatName, request: Json): Json =>
  redact(format, request).body ?? request

/** Adds something to every string that has words. */
function plant(value: unknown, next: () => string): unknown {
  if (typeof value === 'string') {
    return /^[A-Z].*[.:?]$|words/.test(value) ? `${value} ${next()}` : value
  }
  if (Array.isArray(value)) return value.map((item) => plant(item, next))
  if (typeof value !== 'object' || value === null) return value
  // A turn has only one text of reasoning, and the other one shares its fate.
  if ('type' in value && value.type === 'reasoning_text') return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, plant(inner, next)]),
  )
}

/** By the meaning of the parts, without the request they were read from. */
function editTurn(turn: Turn, edit: (text: string) => string): Turn {
  const editJson = (json: Json) => editStrings(json, edit) as Json
  const editPart = (part: Part): Part => {
    switch (part.type) {
      case 'text':
      case 'refusal':
        return { ...part, text: edit(part.text) }
      case 'reasoning':
        if (!part.opaque) return { ...part, text: edit(part.text) }
        return { ...part, text: edit(part.text) === part.text ? part.text : '' }
      case 'tool_result':
        return { ...part, parts: part.parts.map((inner) => editPart(inner) as ContentPart) }
      case 'document':
        return part.source.type === 'text'
          ? { ...part, source: { ...part.source, text: edit(part.source.text) } }
          : part
      case 'foreign':
        return { ...part, text: JSON.stringify(editJson(JSON.parse(part.text) as Json)) }
      default:
        return part
    }
  }
  return {
    ...turn,
    system: turn.system.map(edit),
    messages: turn.messages.map((message) => ({ ...message, parts: message.parts.map(editPart) })),
    tools: turn.tools.map((tool) => ({
      ...tool,
      description: tool.description && edit(tool.description),
      parameters: editJson(tool.parameters),
    })),
    outputFormat: turn.outputFormat && editFormat(turn.outputFormat, editJson),
  }
}

const editFormat = (format: OutputFormat, editJson: (json: Json) => Json): OutputFormat =>
  format.type === 'json_schema' ? { ...format, schema: editJson(format.schema) } : format

function editStrings(value: unknown, edit: (text: string) => string): unknown {
  if (typeof value === 'string') return edit(value)
  if (Array.isArray(value)) return value.map((item) => editStrings(item, edit))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, editStrings(inner, edit)]),
  )
}

/** Reasoning that is withheld has no second text either. */
const withoutRawReasoning = (turn: Turn): Turn => ({
  ...turn,
  messages: turn.messages.map(({ role, parts }) => ({
    role,
    parts: parts.filter((part) => part.type !== 'foreign' || !part.text.includes('reasoning_text')),
  })),
})

/** Numbers follow the order of the request, which a turn does not keep. */
const unnumbered = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/\[([A-Z]+)_\d+\]/g, '[$1]'))

const names = Object.keys(callerFormats) as CallerFormatName[]
const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)
const someTexts = fc.array(fc.constantFrom(...planted.map(([text]) => text), ...harmless), {
  minLength: 1,
  maxLength: 30,
})

describe.each(names)('requests in %s', (name) => {
  const { readTurn } = callerFormats[name]

  test('nothing that is said to the model is left', () => {
    const request = plant(richRequests[name], () => mail) as Json
    expect(JSON.stringify(request)).toContain(mail)
    const body = JSON.stringify(bodyOf(name, request))
    // What an earlier call of a tool was given stays.
    expect(body.replaceAll(`A patch. ${mail}`, '')).not.toContain(mail)
    expect(body).toContain('[EMAIL_1]')
  })

  test('body and turn agree, whatever is found and wherever', { timeout: 60_000 }, () => {
    let changed = 0
    fc.assert(
      fc.property(someTexts, (texts) => {
        let count = 0
        const next = () => `and ${texts[count++ % texts.length]} there`
        const request = plant(richRequests[name], next) as Json
        const { body, turn } = redact(name, request)
        const edit = (text: string) => finish(redactText(text, createPlaceholders()))
        const edited = editTurn(readTurn(request), edit)
        const isChanged = body !== null
        if (isChanged) changed++
        const expected = isChanged ? withoutRawReasoning(edited) : edited
        const actual = isChanged ? withoutRawReasoning(turn) : turn
        expect(unnumbered(actual)).toEqual(unnumbered(expected))
      }),
      { numRuns: 100, seed },
    )
    expect(changed).toBeGreaterThan(50)
  })

  test('a request without any is forwarded as it is', () => {
    expect(redact(name, richRequests[name])).toMatchObject({ body: null, found: [] })
  })
})

const contentOf = (content: unknown[], role = 'assistant') => {
  const messages = [
    { role, content },
    { role: 'user', content: 'Go on.' },
  ]
  const { messages: redacted } = bodyOf('messages', { model: 'm', max_tokens: 5, messages })
  return (redacted as { content: unknown }[])[0]?.content
}

test('the arguments of earlier calls, names and addresses stay', () => {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'send', input: { to: mail } }
  const image = { type: 'image', source: { type: 'url', url: `https://example.org/${mail}` } }
  const text = { type: 'text', text: mail }
  expect(contentOf([call, image, text])).toEqual([call, image, { ...text, text: '[EMAIL_1]' }])
})

test('what passes and what is withheld is counted apart from what is replaced', () => {
  const escaped = String.raw`{"to":"jane\u0040example.com","cc":["4111 1111 1111 1111"]}`
  const messages = [
    { role: 'user', content: `From ${mail}, again ${mail}` },
    {
      role: 'assistant',
      content: null,
      reasoning_content: `About ${mail}.`,
      reasoning_signature: 'c2ln',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'send', arguments: escaped } },
        { id: 'c2', type: 'custom', custom: { name: 'patch', input: `to ${mail}` } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'Done.' },
  ]
  expect(redact('chat_completions', { model: 'm', messages }).found).toEqual([
    { type: 'EMAIL', replaced: 2, withheld: 1, passed: 2 },
    { type: 'CARD', replaced: 0, withheld: 0, passed: 1 },
  ])
})

test('sealed reasoning is withheld where it would be redacted, and its seal stays', () => {
  const thinking = { type: 'thinking', thinking: `About ${mail}.`, signature: 'c2ln' }
  const fine = { type: 'thinking', thinking: 'About 42.', signature: 'c2ln' }
  const open = { type: 'thinking', thinking: `About ${mail}.`, signature: '' }
  expect(contentOf([thinking, fine, open])).toEqual([
    { ...thinking, thinking: '' },
    fine,
    { ...open, thinking: 'About [EMAIL_1].' },
  ])
})

test('values in schemas stay, and what describes them is redacted, whatever it is called', () => {
  const schema = (words: string) => ({
    type: 'string',
    description: words,
    enum: [mail],
    default: mail,
    examples: [mail],
  })
  const parameters = (words: string) => ({
    properties: Object.fromEntries(
      ['to', 'name', 'arguments', 'default', 'const', 'examples', 'headers'].map((name) => [
        name,
        schema(words),
      ]),
    ),
    $defs: { default: schema(words) },
  })
  const tools = (words: string) => [
    { type: 'function', name: 'send', parameters: parameters(words) },
  ]
  const { body, turn } = redact('responses', { input: 'Go.', tools: tools(`To ${mail}`) })
  expect(body?.['tools']).toEqual(tools('To [EMAIL_1]'))
  expect(turn.tools[0]?.parameters).toEqual(parameters('To [EMAIL_1]'))
})

test('numbers that a double cannot hold keep their digits', () => {
  const body = `{"input":"To ${mail}","seed":12345678901234567890,"x":[1e999]}`
  expect(JSON.stringify(bodyOf('responses', parseExact(body) as Json))).toBe(
    body.replace(mail, '[EMAIL_1]'),
  )
})

const encode = (text: string) => Buffer.from(text).toString('base64')

test.each([
  ['an address of data', (text: string) => `data:text/plain;base64,${encode(text)}`],
  ['an address of data of another type', (text: string) => `data:text/csv;base64,${encode(text)}`],
  ['JSON', (text: string) => `data:application/json;base64,${encode(`{"a":"${text}"}`)}`],
  ['bare base64', encode],
])('a file is redacted in every format: %s', (_, file) => {
  const inResponses = (text: string) => [
    { role: 'user', content: [{ type: 'input_file', filename: 'a.txt', file_data: file(text) }] },
  ]
  const inChat = (text: string) => [
    {
      role: 'user',
      content: [{ type: 'file', file: { filename: 'a.txt', file_data: file(text) } }],
    },
  ]
  const [broken, fine] = [`To ${mail}`, 'To [EMAIL_1]']
  expect(bodyOf('responses', { input: inResponses(broken) })['input']).toEqual(inResponses(fine))
  expect(bodyOf('chat_completions', { messages: inChat(broken) })['messages']).toEqual(inChat(fine))
})

test('documents are redacted, plain and in base64, and what is no text stays', () => {
  const document = (source: object) => ({ type: 'document', source })
  const plain = { type: 'text', media_type: 'text/plain', data: mail }
  const encoded = { type: 'base64', media_type: 'text/plain', data: encode(`To ${mail}`) }
  const image = { type: 'base64', media_type: 'image/png', data: encode(mail) }
  const pdf = { type: 'base64', media_type: 'application/pdf', data: encode(`%PDF-1.7 ${mail}`) }
  const sources = [plain, encoded, image, pdf].map(document)
  expect(contentOf(sources, 'user')).toEqual([
    document({ ...plain, data: '[EMAIL_1]' }),
    document({ ...encoded, data: encode('To [EMAIL_1]') }),
    document(image),
    document(pdf),
  ])
})
