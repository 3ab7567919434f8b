import { recordOf, listOf, textOf, type Json } from './json.ts'
import type { RawResponse, Way } from './raw-client.ts'

/** An answer in one form for every protocol, streamed or plain. */
export type ParsedAnswer = {
  text: string
  thinking: string
  sealed: string
  refusal: string
  calls: { name: unknown; arguments: unknown }[]
  stop: unknown
  usage: unknown
}

/** The data of each event, in order; `[DONE]` stays a string. */
export function eventsIn(text: string): { event: string | undefined; data: unknown }[] {
  return text
    .split(/\r?\n\r?\n/)
    .filter(Boolean)
    .map((frame) => {
      const event = /^event: (.*?)\r?$/m.exec(frame)?.[1]
      const data = /^data: (.*?)\r?$/m.exec(frame)?.[1] ?? ''
      return { event, data: data.startsWith('{') ? JSON.parse(data) : data }
    })
}

export const dataIn = (text: string) => eventsIn(text).map(({ data }) => recordOf(data))

export function understand({ text }: RawResponse, { dialect, stream }: Way): ParsedAnswer {
  const whole = stream ? assemblers[dialect](dataIn(text)) : recordOf(JSON.parse(text))
  return readers[dialect](whole)
}

const readers = { messages: readMessage, chat: readCompletion, responses: readResponse }

function readMessage(message: Json): ParsedAnswer {
  const blocks = listOf(message['content']).map(recordOf)
  const joined = (type: string, member: string) =>
    blocks.flatMap((block) => (block['type'] === type ? [block[member]] : [])).join('')
  return {
    text: joined('text', 'text'),
    thinking: joined('thinking', 'thinking'),
    sealed: joined('redacted_thinking', 'data'),
    refusal: textOf(recordOf(message['stop_details'])['explanation']) ?? '',
    calls: blocks.flatMap(({ type, name, input }) =>
      type === 'tool_use' ? [{ name, arguments: input }] : [],
    ),
    stop: message['stop_reason'],
    usage: message['usage'],
  }
}

function readCompletion({ choices, usage }: Json): ParsedAnswer {
  const { message, finish_reason } = recordOf(listOf(choices)[0])
  const { content, refusal, reasoning_content, tool_calls } = recordOf(message)
  return {
    text: textOf(content) ?? '',
    thinking: textOf(reasoning_content) ?? '',
    sealed: '',
    refusal: textOf(refusal) ?? '',
    calls: listOf(tool_calls).map((call) => {
      const inner = recordOf(recordOf(call)['function'])
      return { name: inner['name'], arguments: JSON.parse(String(inner['arguments'])) }
    }),
    stop: finish_reason,
    usage,
  }
}

function readResponse({ output, status, incomplete_details, usage }: Json): ParsedAnswer {
  const items = listOf(output).map(recordOf)
  const inside = (member: string) =>
    items.flatMap((item) => listOf(item[member]).map(recordOf)).map(recordOf)
  return {
    text: inside('content')
      .map((part) => part['text'])
      .join(''),
    thinking: inside('summary')
      .map((part) => part['text'])
      .join(''),
    sealed: items.map((item) => item['encrypted_content']).join(''),
    refusal: inside('content')
      .map((part) => part['refusal'])
      .join(''),
    calls: items.flatMap(({ type, name, arguments: text }) =>
      type === 'function_call' ? [{ name, arguments: JSON.parse(String(text)) }] : [],
    ),
    stop: recordOf(incomplete_details)['reason'] ?? status,
    usage,
  }
}

const assemblers = {
  messages: assembleMessage,
  chat: assembleCompletion,
  responses: assembleResponse,
}

function assembleMessage(events: Json[]): Json {
  const content: Json[] = []
  const message = { ...recordOf(events[0]?.['message']), content } as Json
  for (const event of events) {
    const block = content[Number(event['index'])] ?? {}
    const delta = recordOf(event['delta'])
    if (event['type'] === 'content_block_start')
      content.push({ ...recordOf(event['content_block']) })
    if (event['type'] === 'content_block_delta') addDelta(block, delta)
    if (event['type'] === 'message_delta') {
      Object.assign(message, delta)
      if (event['usage']) message['usage'] = { ...recordOf(message['usage']), ...event['usage'] }
    }
  }
  for (const block of content) {
    if (block['type'] === 'tool_use') block['input'] = JSON.parse(textOf(block['json']) ?? '{}')
  }
  return message
}

function addDelta(block: Json, { type: _, partial_json, ...members }: Json) {
  const parts = partial_json === undefined ? members : { json: partial_json }
  for (const [name, value] of Object.entries(parts)) {
    block[name] = `${textOf(block[name]) ?? ''}${String(value)}`
  }
}

function assembleCompletion(chunks: Json[]): Json {
  const message: Json = {}
  const calls: Json[] = []
  let finish_reason: unknown
  for (const chunk of chunks) {
    const choice = recordOf(listOf(chunk['choices'])[0])
    const { role: _, tool_calls, ...texts } = recordOf(choice['delta'])
    finish_reason ??= choice['finish_reason'] ?? undefined
    for (const [name, value] of Object.entries(texts)) {
      if (typeof value === 'string') message[name] = `${textOf(message[name]) ?? ''}${value}`
    }
    for (const call of listOf(tool_calls).map(recordOf)) {
      const inner = recordOf(call['function'])
      const known = (calls[Number(call['index'])] ??= { ...inner, arguments: '' })
      known['arguments'] = `${String(known['arguments'])}${String(inner['arguments'])}`
    }
  }
  const usage = chunks.findLast((chunk) => chunk['usage'])?.['usage']
  const tool_calls = calls.map((call) => ({ function: call }))
  return { choices: [{ message: { ...message, tool_calls }, finish_reason }], usage }
}

/** Takes texts and arguments from the deltas, and only the rest from the finished items. */
function assembleResponse(events: Json[]): Json {
  const last = recordOf(events.findLast((event) => event['response'])?.['response'])
  const items = events.filter((event) => event['type'] === 'response.output_item.done')
  const joinDeltas = (index: unknown, type: string) =>
    events
      .filter(
        (event) => event['output_index'] === index && event['type'] === `response.${type}.delta`,
      )
      .map((event) => event['delta'])
      .join('')
  const output = items.map(({ item, output_index: index }) => {
    const text = joinDeltas(index, 'output_text')
    const refusal = joinDeltas(index, 'refusal')
    const content = [{ text, refusal }]
    const thought = joinDeltas(index, 'reasoning_summary_text')
    return {
      ...recordOf(item),
      content,
      summary: [{ text: thought }],
      arguments: joinDeltas(index, 'function_call_arguments'),
    }
  })
  return { ...last, output }
}
