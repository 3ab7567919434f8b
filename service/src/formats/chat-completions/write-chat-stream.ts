import {
  type AnswerEvent,
  type Block,
  type Json,
  noUsage,
  type OutFrame,
  type Receipt,
  type Writer,
} from '#formats/answer.ts'
import { creditMembers } from '#formats/credit-members.ts'
import type { Answering } from '#formats/format.ts'
import type { OpaqueState } from '#formats/turn.ts'

import { chatErrorFrame } from './chat-error.ts'
import { writeFinishReason } from './chat-finish-reason.ts'
import { isUsageWanted, writeChatUsage } from './chat-usage.ts'
import { createProseChannel } from './prose-channel.ts'
import { writeSignature } from './reasoning-signature.ts'

export const doneFrame: OutFrame = { event: null, data: '[DONE]', bytes: null }

/** Writes an answer as the chunks of a chat completion. The finish reason is held until the receipt is known. */
export function createChatWriter(answering: Answering): Writer {
  const hasUsage = isUsageWanted(answering.request)
  const members = {
    id: `chatcmpl-${answering.requestId.slice(-24)}`,
    object: 'chat.completion.chunk',
    created: Math.floor(answering.createdAt.getTime() / 1000),
    model: answering.model,
  }
  let frames: OutFrame[] = []
  let end: Extract<AnswerEvent, { type: 'finished' }> | undefined

  function frame(choice: Json, more: Json = {}): OutFrame {
    const usage = hasUsage ? { usage: null } : {}
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
      const reason = writeFinishReason(end?.reason ?? 'end', deltas.content)
      const credits = creditMembers(receipt)
      const last = frame({ finish_reason: reason }, hasUsage ? {} : credits)
      if (!hasUsage) return [last, doneFrame]
      const usage = writeChatUsage(receipt.usage ?? end?.usage ?? noUsage)
      const data = { ...members, choices: [], usage, ...credits }
      return [last, { event: null, data, bytes: null }, doneFrame]
    },
    fail: (error) => [chatErrorFrame(error, answering.requestId)],
  }
}

type Piece = { index: number; text: string } | { index: number; opaque: OpaqueState }
type Unfinished = Exclude<AnswerEvent, { type: 'finished' }>

/** Writes the blocks of an answer as deltas. Tool calls may overlap in this format; prose of one kind may not. */
function createDeltas(write: (delta: Json) => void) {
  const content = { hasRefusal: false }
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
    content.hasRefusal ||= block.type === 'refusal'
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
        if (!kind) return calls.end(event.index, event.isCut)
        channels[kind].end(event.index)
        // The message goes on with other words, and has no other border between the two.
        if (event.isCut && kind === 'text') write({ content: '\n\n' })
        return
    }
  }

  return { add, content }
}

/** Reasoning is one text; reasoning-signature.ts describes how its blocks are kept apart. */
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
    /** Clients parse the arguments as JSON, and an empty text is not JSON. A call that was cut must not look complete. */
    end(blockIndex: number, isCut = false) {
      const call = calls.get(blockIndex)
      if (call?.isEmpty && !isCut) writeArguments(call.index, '{}')
    },
  }
}
