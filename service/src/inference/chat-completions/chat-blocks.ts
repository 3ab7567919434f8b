import type { AnswerEvent, Block } from '#inference/answer.ts'
import type { Opaque } from '#inference/turn.ts'

import { type CallPiece, createCallBlocks } from './call-blocks.ts'
import type { Said } from './chat-finish-reason.ts'

type Prose = Exclude<Block['type'], 'tool_call'>

/**
 * Which blocks of an answer are open. This format has no blocks: prose of one kind is a block until
 * prose of another kind or a tool call comes. A tool call is a block of its own from when its id and its
 * name are known until another block starts and its arguments are whole, or until the end.
 */
export function createBlocks(emit: (event: AnswerEvent) => void) {
  let blockCount = 0
  let prose: { kind: Prose; index: number } | undefined
  const said: Said = { hasToolCalls: false, hasRefusal: false }

  function endProse() {
    if (prose) emit({ type: 'block_ended', index: prose.index })
    prose = undefined
  }

  function start(block: Block): number {
    endProse()
    calls.endWhole()
    emit({ type: 'block_started', index: blockCount, block })
    return blockCount++
  }
  const calls = createCallBlocks(emit, start)

  function openProse(kind: Prose): number {
    if (prose?.kind !== kind) prose = { kind, index: start({ type: kind }) }
    return prose.index
  }

  return {
    said: said as Readonly<Said>,
    callIds: calls.ids,
    say(kind: Prose, text: string) {
      if (text === '') return
      said.hasRefusal ||= kind === 'refusal'
      emit({ type: 'block_delta', index: openProse(kind), text })
    },
    /** Opaque state ends the reasoning it belongs to; it may come without any. */
    seal(opaque: Opaque) {
      emit({ type: 'block_sealed', index: openProse('reasoning'), opaque })
      endProse()
    },
    call(place: number, piece: CallPiece) {
      said.hasToolCalls = true
      calls.add(place, piece)
    },
    end(answerId: string) {
      calls.startAll(answerId)
      endProse()
      calls.endAll()
    },
  }
}
