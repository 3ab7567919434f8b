import type { AnswerEvent, Block } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'

/** A part of a tool call; '' stands for what it does not have. */
export type CallPiece = { id: string; name: string; arguments: string }

/** `arguments` collects all parts, also those that came before the block could start. */
type Call = CallPiece & {
  /** The index of its block; undefined until its id and its name are known. */
  block: number | undefined
  hasEnded: boolean
}

/** Tool calls of an answer, by the upstream's own index. */
export function createCallBlocks(
  emit: (event: AnswerEvent) => void,
  startBlock: (block: Block) => number,
) {
  const calls = new Map<number, Call>()

  function start(call: Call) {
    call.block = startBlock({ type: 'tool_call', id: call.id, name: call.name })
    if (call.arguments !== '') {
      emit({ type: 'block_delta', index: call.block, text: call.arguments })
    }
  }

  function end(isDone: (call: Call) => boolean) {
    for (const call of calls.values()) {
      if (call.block === undefined || call.hasEnded || !isDone(call)) continue
      emit({ type: 'block_ended', index: call.block })
      call.hasEnded = true
    }
  }

  return {
    add(callIndex: number, piece: CallPiece) {
      const call = calls.get(callIndex) ?? { ...emptyCall }
      calls.set(callIndex, call)
      call.id ||= piece.id
      call.name ||= piece.name
      call.arguments += piece.arguments
      if (call.block === undefined) {
        if (call.id !== '' && call.name !== '') start(call)
      } else if (piece.arguments !== '') {
        if (call.hasEnded) throw new BrokenAnswer('A tool call went on after it was complete.')
        emit({ type: 'block_delta', index: call.block, text: piece.arguments })
      }
    },
    /** Starts the calls that have not started. A call without an id gets one. */
    startAll(answerId: string) {
      for (const [callIndex, call] of calls) {
        if (call.block !== undefined) continue
        if (call.name === '') throw new BrokenAnswer('A tool call has no name.')
        call.id ||= `call_${answerId}_${callIndex}`
        start(call)
      }
    },
    /** Ends the calls whose arguments are complete JSON. */
    endComplete: () => end(hasCompleteArguments),
    endAll: () => end(() => true),
    ids: (): Map<number, string> => new Map([...calls].map(([index, { id }]) => [index, id])),
  }
}

const emptyCall: Call = { id: '', name: '', arguments: '', block: undefined, hasEnded: false }

function hasCompleteArguments(call: Call): boolean {
  try {
    JSON.parse(call.arguments)
    return true
  } catch {
    return false
  }
}
