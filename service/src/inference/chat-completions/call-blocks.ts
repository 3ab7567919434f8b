import type { AnswerEvent, Block } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'

/** What a piece does not say is ''. */
export type CallPiece = { id: string; name: string; arguments: string }

/** `arguments` are all that have come, also before the block could be started. */
type Call = CallPiece & {
  /** Undefined: waits for its id or its name. */
  block: number | undefined
  hasEnded: boolean
}

/** The tool calls of an answer, by the index that the upstream gives them. */
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
    add(place: number, piece: CallPiece) {
      const call = calls.get(place) ?? { ...nothing }
      calls.set(place, call)
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
    /** Starts the calls that still wait. One that never got an id is given one. */
    startAll(answerId: string) {
      for (const [place, call] of calls) {
        if (call.block !== undefined) continue
        if (call.name === '') throw new BrokenAnswer('A tool call has no name.')
        call.id ||= `call_${answerId}_${place}`
        start(call)
      }
    },
    endWhole: () => end(hasWholeArguments),
    endAll: () => end(() => true),
    ids: (): Map<number, string> => new Map([...calls].map(([place, { id }]) => [place, id])),
  }
}

const nothing: Call = { id: '', name: '', arguments: '', block: undefined, hasEnded: false }

function hasWholeArguments(call: Call): boolean {
  try {
    JSON.parse(call.arguments)
    return true
  } catch {
    return false
  }
}
