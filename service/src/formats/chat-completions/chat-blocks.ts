import type { AnswerEvent, Block } from '#formats/answer.ts'
import type { OpaqueState } from '#formats/turn.ts'

import { type CallPiece, createCallBlocks } from './call-blocks.ts'
import type { Content } from './chat-finish-reason.ts'

type Prose = Exclude<Block['type'], 'tool_call'>

/**
 * Divides an answer into blocks, which this format does not have. Prose of one kind is a block until prose of
 * another kind or a tool call comes. A tool call is a block of its own from when its id and its name are known
 * until another block starts and its arguments are complete, or until the end.
 */
export function createBlocks(emit: (event: AnswerEvent) => void) {
  let blockCount = 0
  let prose: { kind: Prose; index: number } | undefined
  const content: Content = { hasToolCalls: false, hasRefusal: false }

  function endProse() {
    if (prose) emit({ type: 'block_ended', index: prose.index })
    prose = undefined
  }

  function start(block: Block): number {
    endProse()
    calls.endComplete()
    emit({ type: 'block_started', index: blockCount, block })
    return blockCount++
  }
  const calls = createCallBlocks(emit, start)

  function openProse(kind: Prose): number {
    if (prose?.kind !== kind) prose = { kind, index: start({ type: kind }) }
    return prose.index
  }

  return {
    content: content as Readonly<Content>,
    callIds: calls.ids,
    /** Whether this block is open and is prose. */
    isProse: (index: number) => prose?.index === index,
    addProse(kind: Prose, text: string) {
      if (text === '') return
      content.hasRefusal ||= kind === 'refusal'
      emit({ type: 'block_delta', index: openProse(kind), text })
    },
    /** Opaque state ends its reasoning block; it may come without any reasoning before it. */
    seal(opaque: OpaqueState) {
      emit({ type: 'block_sealed', index: openProse('reasoning'), opaque })
      endProse()
    },
    addCall(callIndex: number, piece: CallPiece) {
      content.hasToolCalls = true
      calls.add(callIndex, piece)
    },
    end(answerId: string) {
      calls.startAll(answerId)
      endProse()
      calls.endAll()
    },
  }
}
