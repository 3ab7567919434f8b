import {
  type AnswerEvent,
  type Block,
  type Json,
  noUsage,
  type OutFrame,
  type Receipt,
  type Writer,
} from '#inference/answer.ts'
import { creditMembers } from '#inference/credit-members.ts'
import type { Answering } from '#inference/protocol.ts'
import type { Opaque } from '#inference/turn.ts'

import { errorFrame } from './chat-error.ts'
import { writeFinishReason } from './chat-finish-reason.ts'
import { isUsageWanted, writeUsage } from './chat-usage.ts'
import { createProseChannel } from './prose-channel.ts'
import { writeSignature } from './reasoning-signature.ts'

export const doneFrame: OutFrame = { event: null, data: '[DONE]', bytes: null }

/** Writes an answer as the chunks of a chat completion. The finish reason waits for the receipt. */
export function createChatWriter(answering: Answering): Writer {
  const isUsageInStream = isUsageWanted(answering.request)
  const members = {
    id: `chatcmpl-${answering.requestId.slice(-24)}`,
    object: 'chat.completion.chunk',
    created: Math.floor(answering.createdAt.getTime() / 1000),
    model: answering.model,
  }
  let frames: OutFrame[] = []
  let end: Extract<AnswerEvent, { type: 'finished' }> | undefined

  function frame(choice: Json, more: Json = {}): OutFrame {
    const usage = isUsageInStream ? { usage: null } : {}
    const choices = [{ index: 0, delta: {}, logprobs: null, finish_reason: null, ...choice }]
    return { event: null, data: { ...members, choices, ...usage, ...more }, bytes: null }
  }
  const deltas = createDeltas((delta) => frames.push(frame({ delta })))

  return {
    write({ events }) {
      frames = []
      for (const event of events) {
        if (end) break
        if (event.type === 'finished') end = event
        else deltas.add(event)
      }
      return frames
    },
    close(receipt: Receipt) {
      const reason = writeFinishReason(end?.reason ?? 'end', deltas.said)
      const credits = creditMembers(receipt)
      const last = frame({ finish_reason: reason }, isUsageInStream ? {} : credits)
      if (!isUsageInStream) return [last, doneFrame]
      const usage = writeUsage(receipt.usage ?? end?.usage ?? noUsage)
      const data = { ...members, choices: [], usage, ...credits }
      return [last, { event: null, data, bytes: null }, doneFrame]
    },
    fail: (error) => [errorFrame(error, answering.requestId)],
  }
}

type Piece = { index: number; text: string } | { index: number; opaque: Opaque }
type Unfinished = Exclude<AnswerEvent, { type: 'finished' }>

/** Turns the blocks of an answer into deltas. Tool calls may overlap here; prose of one kind may not. */
function createDeltas(write: (delta: Json) => void) {
  const said = { hasRefusal: false }
  const calls = createCalls(write)
  const writeReasoning = createReasoning(write)
  const channels = {
    text: createProseChannel<Piece>((piece) => 'text' in piece && write({ content: piece.text })),
    refusal: createProseChannel<Piece>(
      (piece) => 'text' in piece && write({ refusal: piece.text }),
    ),
    reasoning: createProseChannel<Piece>(writeReasoning),
  }
  const kinds = new Map<number, keyof typeof channels>()

  function start(index: number, block: Block) {
    if (block.type === 'tool_call') return calls.start(index, block)
    said.hasRefusal ||= block.type === 'refusal'
    kinds.set(index, block.type)
    return channels[block.type].start(index)
  }

  function add(event: Unfinished) {
    if (event.type === 'started') return write({ role: 'assistant', content: '' })
    if (event.type === 'block_started') return start(event.index, event.block)
    const kind = kinds.get(event.index)
    switch (event.type) {
      case 'block_delta':
        return kind ? channels[kind].add(event.index, event) : calls.add(event.index, event.text)
      case 'block_sealed':
        return channels.reasoning.add(event.index, event)
      case 'block_ended':
        return kind ? channels[kind].end(event.index) : calls.end(event.index)
    }
  }

  return { add, said }
}

/** Reasoning is one text; see reasoning-signature.ts for what belongs to its parts. */
function createReasoning(write: (delta: Json) => void) {
  let length = 0
  let isFirst = true
  const starts = new Map<number, number>()
  return (piece: Piece) => {
    const startsAt = starts.get(piece.index) ?? length
    starts.set(piece.index, startsAt)
    if ('text' in piece) {
      length += piece.text.length
      write({ reasoning_content: piece.text })
    } else {
      write({ reasoning_signature: writeSignature(piece.opaque, { isFirst, startsAt }) })
      isFirst = false
    }
  }
}

function createCalls(write: (delta: Json) => void) {
  const calls = new Map<number, { index: number; isEmpty: boolean }>()
  const writeArguments = (index: number, text: string) =>
    write({ tool_calls: [{ index, function: { arguments: text } }] })
  return {
    start(blockIndex: number, { id, name }: { id: string; name: string }) {
      const index = calls.size
      calls.set(blockIndex, { index, isEmpty: true })
      write({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })
    },
    add(blockIndex: number, text: string) {
      const call = calls.get(blockIndex)
      if (!call || text === '') return
      call.isEmpty = false
      writeArguments(call.index, text)
    },
    /** Callers read the arguments as JSON, and nothing is not JSON. */
    end(blockIndex: number) {
      const call = calls.get(blockIndex)
      if (call?.isEmpty) writeArguments(call.index, '{}')
    },
  }
}
