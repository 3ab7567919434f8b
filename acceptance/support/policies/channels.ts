import { eventsOf, type Format } from '#support/streams/call.ts'

// The texts of an answer that rules judge, in the order in which the scripted upstream sends them.

type Spoken = {
  thinking?: string | undefined
  text: string
  /** `raw` is the JSON of the arguments, or the start of it. */
  calls: { name: string; raw: string }[]
}
type Json = Record<string, unknown>

/** The thoughts, the text, and for each call its name and each key and value. Texts without a character are left out. */
export function channelsOf({ thinking = '', text, calls }: Spoken): string[] {
  const called = calls.flatMap(({ name, raw }) => [name, ...textsIn(raw)])
  return [thinking, text, ...called].filter((one) => one !== '')
}

/** Keys, strings and other values in JSON, which may end anywhere. */
function textsIn(raw: string): string[] {
  const tokens = raw.match(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s{}[\],:"]+/g) ?? []
  return tokens.map((token) => {
    if (!token.startsWith('"')) return token
    const inside = token.slice(1).replace(/(?<!\\)((?:\\\\)*)"$/, '$1')
    // Half an escape says nothing.
    const whole = inside.replace(/(?<!\\)((?:\\\\)*)\\(?:u[0-9a-f]{0,3})?$/, '$1')
    return JSON.parse(`"${whole}"`) as string
  })
}

/** What a caller has received of a stream, also if it ends with an error. */
export function channelsInStream(stream: string, format: Format): string[] {
  const spoken: Required<Spoken> = { thinking: '', text: '', calls: [] }
  if (!stream.startsWith('{')) {
    for (const { data } of eventsOf(stream)) if (data !== '[DONE]') readers[format](spoken, data)
  }
  return channelsOf(spoken)
}

export function channelsInBody(body: string, format: Format): string[] {
  const json = JSON.parse(body) as Json
  const spoken: Required<Spoken> = { thinking: '', text: '', calls: [] }
  plainReaders[format](spoken, json)
  return channelsOf(spoken)
}

type Read = (spoken: Required<Spoken>, json: Json) => void

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')
const listOf = (value: unknown) => (Array.isArray(value) ? (value as Json[]) : [])
const objectOf = (value: unknown) => (value ?? {}) as Json

function readMessageEvent(spoken: Required<Spoken>, json: Json) {
  const block = objectOf(json['content_block'])
  if (block['type'] === 'tool_use') spoken.calls.push({ name: textOf(block['name']), raw: '' })
  const delta = objectOf(json['delta'])
  spoken.thinking += textOf(delta['thinking'])
  spoken.text += textOf(delta['text'])
  const call = spoken.calls.at(-1)
  if (call) call.raw += textOf(delta['partial_json'])
}

function readChatMessage(spoken: Required<Spoken>, message: Json) {
  spoken.thinking += textOf(message['reasoning_content'])
  spoken.text += textOf(message['content'])
  for (const call of listOf(message['tool_calls'])) {
    const called = objectOf(call['function'])
    if (called['name'] !== undefined) spoken.calls.push({ name: textOf(called['name']), raw: '' })
    const last = spoken.calls.at(-1)
    if (last) last.raw += textOf(called['arguments'])
  }
}

/** The whole response repeats what the deltas said; it counts in their place. */
function readResponseEvent(spoken: Required<Spoken>, json: Json) {
  const delta = textOf(json['delta'])
  const item = objectOf(json['item'])
  switch (json['type']) {
    case 'response.reasoning_summary_text.delta':
      spoken.thinking += delta
      break
    case 'response.output_text.delta':
      spoken.text += delta
      break
    case 'response.function_call_arguments.delta':
      spoken.calls.at(-1)!.raw += delta
      break
    case 'response.output_item.added':
      if (item['type'] === 'function_call') {
        spoken.calls.push({ name: textOf(item['name']), raw: '' })
      }
      break
    case 'response.completed':
      Object.assign(spoken, { thinking: '', text: '', calls: [] })
      readResponse(spoken, objectOf(json['response']))
      break
    default:
  }
}

function readResponse(spoken: Required<Spoken>, response: Json) {
  for (const item of listOf(response['output'])) {
    for (const part of listOf(item['summary'])) spoken.thinking += textOf(part['text'])
    for (const part of listOf(item['content'])) spoken.text += textOf(part['text'])
    if (item['type'] === 'function_call') {
      spoken.calls.push({ name: textOf(item['name']), raw: textOf(item['arguments']) })
    }
  }
}

const readers: Record<Format, Read> = {
  messages: readMessageEvent,
  chat: (spoken, json) => {
    for (const choice of listOf(json['choices'])) readChatMessage(spoken, objectOf(choice['delta']))
  },
  responses: readResponseEvent,
}

const plainReaders: Record<Format, Read> = {
  messages: (spoken, json) => {
    for (const block of listOf(json['content'])) {
      spoken.thinking += textOf(block['thinking'])
      spoken.text += textOf(block['text'])
      if (block['type'] === 'tool_use') {
        spoken.calls.push({ name: textOf(block['name']), raw: JSON.stringify(block['input']) })
      }
    }
  },
  chat: (spoken, json) => {
    for (const choice of listOf(json['choices']))
      readChatMessage(spoken, objectOf(choice['message']))
  },
  responses: readResponse,
}
