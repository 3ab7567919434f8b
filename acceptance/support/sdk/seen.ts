import type { FormatId } from '@gatehouse/tools/compatibility'

// A request as the upstream received it, in a form common to all formats: the tests check it as well as the answer.

type Json = Record<string, unknown>

export type Seen = {
  body: Json
  system: string
  /** Each message, or item, as `role: text`; items without a role have their type. */
  messages: string[]
  /** URLs; inline data as data URLs. */
  images: string[]
  pdfs: string[]
  /** Text documents, where the format distinguishes them from text. */
  texts: string[]
  tools: string[]
  choice: unknown
  results: { id: string; text: string }[]
  stop: unknown
  maxTokens: unknown
  schema: unknown
  thoughts: { text: string; sealed: unknown }[]
}

const record = (value: unknown): Json => (value ?? {}) as Json
const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : [])
const word = (value: unknown): string => (typeof value === 'string' ? value : '')
const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : list(content)
        .map(({ text }) => word(text))
        .join('')

export const readSeen = (format: FormatId, body: Json): Seen => readers[format](body)

const readers = { messages: readMessages, chat_completions: readChat, responses: readResponses }

function readMessages(body: Json): Seen {
  const messages = list(body['messages'])
  const blocks = messages.flatMap(({ content }) => list(content))
  const of = (type: string) => blocks.filter((block) => block['type'] === type)
  const sources = (type: string) => of(type).map(({ source }) => record(source))
  return {
    body,
    system: textOf(body['system']),
    messages: messages.map(({ role, content }) => `${String(role)}: ${textOf(content)}`),
    images: sources('image').map(toUrl),
    pdfs: sources('document')
      .filter(({ type }) => type === 'base64')
      .map(toUrl),
    texts: sources('document')
      .filter(({ type }) => type === 'text')
      .map(({ data }) => String(data)),
    tools: list(body['tools']).map(({ name }) => String(name)),
    choice: readChoice(body['tool_choice']),
    results: of('tool_result').map(({ tool_use_id, content }) => ({
      id: String(tool_use_id),
      text: textOf(content),
    })),
    stop: body['stop_sequences'],
    maxTokens: body['max_tokens'],
    schema: record(record(body['output_config'])['format'])['schema'],
    thoughts: blocks.flatMap(({ type, thinking, signature, data }) =>
      type === 'thinking' || type === 'redacted_thinking'
        ? [{ text: word(thinking), sealed: signature ?? data }]
        : [],
    ),
  }
}

const toUrl = ({ type, url, media_type, data }: Json) =>
  type === 'url' ? String(url) : `data:${String(media_type)};base64,${String(data)}`

function readChat(body: Json): Seen {
  const messages = list(body['messages'])
  const isSystem = ({ role }: Json) => role === 'system' || role === 'developer'
  const parts = messages.flatMap(({ content }) => list(content))
  return {
    body,
    system: messages
      .filter(isSystem)
      .map(({ content }) => textOf(content))
      .join(''),
    messages: messages
      .filter((message) => !isSystem(message))
      .map(({ role, content }) => `${String(role)}: ${textOf(content)}`),
    images: parts.flatMap(({ image_url }) => (image_url ? String(record(image_url)['url']) : [])),
    pdfs: filesIn(
      parts.map(({ file }) => record(file)['file_data']),
      'application/pdf',
    ),
    texts: filesIn(
      parts.map(({ file }) => record(file)['file_data']),
      'text/plain',
    ).map(toText),
    tools: list(body['tools']).map((tool) => String(record(tool['function'])['name'])),
    choice: readChoice(body['tool_choice']),
    results: messages.flatMap(({ role, tool_call_id, content }) =>
      role === 'tool' ? [{ id: String(tool_call_id), text: textOf(content) }] : [],
    ),
    stop: body['stop'],
    maxTokens: body['max_completion_tokens'] ?? body['max_tokens'],
    schema: record(record(body['response_format'])['json_schema'])['schema'],
    thoughts: [],
  }
}

const filesIn = (files: unknown[], mediaType: string) =>
  files.map(word).filter((file) => file.startsWith(`data:${mediaType};`))
const toText = (url: string) => Buffer.from(url.split(',')[1] ?? '', 'base64').toString()

function readResponses(body: Json): Seen {
  const items = list(body['input'])
  const isSystem = ({ role }: Json) => role === 'system' || role === 'developer'
  const parts = items.flatMap(({ content }) => list(content))
  const files = parts.map(({ file_data }) => file_data)
  return {
    body,
    system: [body['instructions'], ...items.filter(isSystem).map(({ content }) => textOf(content))]
      .filter(Boolean)
      .join(''),
    messages: items
      .filter((item) => !isSystem(item))
      .map(({ role, type, content }) => `${String(role ?? type)}: ${textOf(content)}`),
    images: parts.flatMap(({ image_url }) => (image_url ? word(image_url) : [])),
    pdfs: filesIn(files, 'application/pdf'),
    texts: filesIn(files, 'text/plain').map(toText),
    tools: list(body['tools']).map(({ name }) => String(name)),
    choice: readChoice(body['tool_choice']),
    results: items.flatMap(({ type, call_id, output }) =>
      type === 'function_call_output' ? [{ id: String(call_id), text: textOf(output) }] : [],
    ),
    stop: body['stop'],
    maxTokens: body['max_output_tokens'],
    schema: record(record(body['text'])['format'])['schema'],
    thoughts: items.flatMap(({ type, summary, encrypted_content }) =>
      type === 'reasoning' ? [{ text: textOf(summary), sealed: encrypted_content }] : [],
    ),
  }
}

/** In the form that the feature tests use. */
function readChoice(choice: unknown): unknown {
  if (choice === undefined || typeof choice === 'string') return choice
  const { type, name, function: inner } = record(choice)
  if (type === 'any') return 'required'
  return type === 'tool' || type === 'function' ? { name: name ?? record(inner)['name'] } : type
}
