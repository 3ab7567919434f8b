import { readdirSync, readFileSync } from 'node:fs'

import type { AnswerEvent, Frame, Json, OutFrame, SourceFrame, Usage } from '#formats/answer.ts'
import { createChatReader } from '#formats/chat-completions/read-chat-stream.ts'
import type { Answering } from '#formats/format.ts'

/** A stream as an upstream sent it, what it says in short, and the plain answer it amounts to. */
export type Golden = {
  name: string
  bytes: Buffer
  outline: string[]
  body?: Json & { choices: [{ message: Json; finish_reason: string }]; usage: Json }
  /** Members of the choice that are others when the answer is rebuilt. */
  rewritten?: { message?: Json; finish_reason?: string; logprobs?: null }
  fails?: string
}

const folder = new URL('golden/', import.meta.url)

export const goldens: Golden[] = readdirSync(folder)
  .filter((file) => file.endsWith('.sse'))
  .map((file) => {
    const name = file.slice(0, -'.sse'.length)
    const expected = readFileSync(new URL(`${name}.json`, folder), 'utf8')
    return {
      name,
      bytes: readFileSync(new URL(file, folder)),
      ...(JSON.parse(expected) as Omit<Golden, 'name' | 'bytes'>),
    }
  })

export const wholeGoldens = goldens.flatMap((golden) =>
  golden.body ? [{ ...golden, body: golden.body }] : [],
)

export const receipt = { remainingCredits: 900, creditsUsed: 7, costUsd: 0.0007, usage: null }
export const credits = {
  remaining_credits: 900,
  estimated_credits_used: 7,
  estimated_cost_usd: 0.0007,
}

export const answering = (request: Json = {}): Answering => ({
  requestId: 'req_0123456789abcdefghjkmnpq',
  model: 'their-name',
  createdAt: new Date(1_800_000_000_999),
  inputTokens: 42,
  request,
})

export const source = (json: Json): SourceFrame => {
  const data = JSON.stringify(json)
  return { event: '', data, json, bytes: Buffer.from(`data: ${data}\n\n`) }
}

export const endOfStream: SourceFrame = {
  event: '',
  data: '[DONE]',
  json: {},
  bytes: Buffer.alloc(0),
}

/** Reads as the pipeline does: until the answer is finished, and then the end of the stream. */
export function readAll(sources: readonly SourceFrame[]): { frames: Frame[]; failure?: unknown } {
  const reader = createChatReader()
  const frames: Frame[] = []
  try {
    for (const one of [...sources, endOfStream]) {
      if (reader.isFinished()) break
      frames.push({ events: reader.read(one), source: one })
    }
    return { frames }
  } catch (failure) {
    return { frames, failure }
  }
}

export const eventsOf = (frames: readonly Frame[]): AnswerEvent[] =>
  frames.flatMap(({ events }) => events)

/** What our writers wrote, as an upstream would have sent it. */
export const asSources = (frames: readonly OutFrame[]): SourceFrame[] =>
  frames.map(({ data }) => (data === '[DONE]' ? endOfStream : source(data)))

/** An answer in a few lines; throws when its events come in an order that is not allowed. */
export function outlineOf(events: readonly AnswerEvent[]): string[] {
  const lines: string[] = []
  const blocks: { line: string; isOpen: boolean; isSealed: boolean }[] = []
  for (const [position, event] of events.entries()) {
    if ((event.type === 'started') !== (position === 0)) throw new Error('Not started first.')
    if (event.type === 'started') {
      lines.push(`started ${event.id} ${event.model}`)
      continue
    }
    if (event.type === 'finished') {
      if (blocks.some(({ isOpen }) => isOpen)) throw new Error('Finished with open blocks.')
      if (position !== events.length - 1) throw new Error('Something follows the end.')
      const last = `finished ${event.reason} ${usageLine(event.usage)}`
      return [...lines, ...blocks.map(({ line }) => line), last]
    }
    if (event.type === 'block_started') {
      if (event.index !== blocks.length) throw new Error('A block has the wrong number.')
      const { block } = event
      const name = block.type === 'tool_call' ? ` ${block.id} ${block.name}` : ''
      blocks.push({ line: `${block.type}${name} `, isOpen: true, isSealed: false })
      continue
    }
    const block = blocks[event.index]
    if (!block?.isOpen) throw new Error('An event for a block that is not open.')
    if (event.type === 'block_ended') block.isOpen = false
    else if (block.isSealed) throw new Error('A sealed block goes on.')
    else if (event.type === 'block_delta') block.line += event.text
    else {
      const { origin, kind, data, id } = event.opaque
      block.line += ` sealed ${origin} ${kind} ${data} ${id}`
      block.isSealed = true
    }
  }
  return [...lines, ...blocks.map(({ line }) => line)]
}

function usageLine(usage: Usage): string {
  const details = [
    [usage.cachedInputTokens, 'cached'],
    [usage.cacheWriteTokens, 'written'],
    [usage.reasoningTokens, 'reasoning'],
  ] as const
  const said = details.flatMap(([count, word]) => (count > 0 ? ` ${count} ${word}` : []))
  return `${usage.inputTokens} in ${usage.outputTokens} out${said.join('')}`
}
