import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { createMessage } from '@gatehouse/contract/message'
import { createResponse } from '@gatehouse/contract/response'
import { beforeAll, expect, test } from 'vitest'

import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats } from '#formats/formats.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { loadCounter } from '#tokens/count.ts'

import { createTurnCounter } from './count/count-turn.ts'
import { withoutEarlierReasoning } from './count/last-turn.ts'
import { readModelRequest } from './read-model-request.ts'
import type { CatalogueModel } from './upstreams/catalogue.ts'

// Bodies of many small values: for how long at a time does reading them hold up the event loop?

const endpoints: Record<CallerFormatName, Endpoint> = {
  messages: createMessage,
  responses: createResponse,
  chat_completions: createChatCompletion,
}
const capabilities = { tools: true, images: true, documents: true, jsonSchema: true }
const model = {
  id: 'm',
  capabilities,
  maxOutputTokens: 10,
  allows: new Set(),
} as unknown as CatalogueModel
const rule = {
  encoding: 'o200k',
  isOwnEncoding: true,
  factors: { ascii: 1, other: 1 },
  imageTokensMax: 3000,
} as const
const counter = createTurnCounter({
  countInThread: async (_, texts) => texts.map(() => 1),
})
const cancellation = new Cancellation()
const asker = { owner: 'org', cancellation, patience: 'short' } as const

const read = (name: CallerFormatName, bytes: Buffer) =>
  readModelRequest(
    {
      catalogue: () => ({ models: [model], upstreams: [], find: () => model }),
      counting: {
        estimate: ({ turn }) => counter.count(withoutEarlierReasoning(turn), rule, asker),
      },
    },
    {
      endpoint: endpoints[name],
      format: callerFormats[name],
      bytes,
      headers: {},
      isAnonymous: false,
      allowedModels: null,
      owner: 'org',
      cancellation,
    },
  )

beforeAll(() => loadCounter('o200k'))

const list = <Item>(length: number, item: (index: number) => Item) =>
  Array.from({ length }, (_, index) => item(index))
const said = list(30_000, () => ({ role: 'user', content: 'a' }))
const blocks = list(33_000, () => ({ type: 'text', text: 'a' }))
const tools = list(12_000, (index) => ({ name: `t${index}`, input_schema: { type: 'object' } }))
const calls = list(9000, (index) => [
  { type: 'function_call', call_id: `c${index}`, name: 'f', arguments: '{}' },
  { type: 'function_call_output', call_id: `c${index}`, output: 'r' },
]).flat()
const functions = list(9000, (index) => ({ type: 'function', function: { name: `t${index}` } }))
const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: functions } }
const hello = [{ role: 'user', content: 'a' }]

const bodies: readonly (readonly [string, CallerFormatName, Record<string, unknown>])[] = [
  ['30,000 messages', 'messages', { messages: said }],
  ['33,000 blocks', 'messages', { messages: [{ role: 'user', content: blocks }] }],
  ['12,000 tools', 'messages', { messages: hello, tools }],
  [
    '90,000 stop sequences',
    'messages',
    { messages: hello, stop_sequences: list(90_000, () => 'x') },
  ],
  ['30,000 messages and long digits', 'messages', { messages: said, user: '1'.repeat(20) }],
  ['30,000 messages', 'chat_completions', { messages: said }],
  [
    '9,000 allowed tools',
    'chat_completions',
    { messages: hello, tools: functions, tool_choice: allowed },
  ],
  ['30,000 messages', 'responses', { input: said }],
  ['9,000 calls', 'responses', { input: calls }],
]

/** The longest time without a turn of the event loop, by this thread's own clock: other processes do not count. */
async function longestBlockMs(work: () => Promise<unknown>) {
  const usedMs = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  let longest = 0
  let isOver = false
  let lastMs = usedMs()
  const turn = () => {
    const nowMs = usedMs()
    longest = Math.max(longest, nowMs - lastMs)
    lastMs = nowMs
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  isOver = true
  turn()
  return longest
}

const reference = Buffer.from(JSON.stringify({ messages: said }))

test.each(bodies)(
  '%s (%s) hold up the event loop not much longer than the parser',
  async (name, format, body) => {
    const bytes = Buffer.from(JSON.stringify({ model: 'm', ...body }))
    let lowest = Infinity
    let shown = ''
    for (let round = 0; round < 5 && lowest >= 6; round++) {
      const parserMs = await longestBlockMs(async () => JSON.parse(reference.toString()))
      const blockMs = await longestBlockMs(async () =>
        expect(await read(format, bytes)).toMatchObject({ ok: true }),
      )
      shown += ` ${blockMs.toFixed(0)}/${parserMs.toFixed(0)}`
      lowest = Math.min(lowest, blockMs / parserMs)
    }
    console.log(
      `${name} (${format}, ${(bytes.length / 1024).toFixed(0)} KB): longest block / parser, ms:${shown}`,
    )
    expect(lowest).toBeLessThan(6)
  },
)
