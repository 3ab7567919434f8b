import type { AnswerEvent, Frame, Piece } from '#formats/answer.ts'

/** Tracks whether, and since when, the caller has received anything that the model has written. */
export function createDelivery() {
  let firstLeftAtMs: number | undefined
  return {
    /** Called with every piece that is passed on to a caller who reads the answer while it is written. */
    noteLeft(piece: Piece) {
      if (firstLeftAtMs !== undefined || !piece.frames.some(showsSomething)) return
      firstLeftAtMs = performance.now()
    },
    hasLeft: () => firstLeftAtMs !== undefined,
    /** On the clock of `performance.now()`. */
    firstLeftAtMs: () => firstLeftAtMs,
  }
}

const showsSomething = ({ events, hasMedia = false }: Frame): boolean =>
  hasMedia || events.some(isShown)

/** The start or end of a block shows nothing by itself, unless it names a tool. */
function isShown(event: AnswerEvent): boolean {
  if (event.type === 'block_delta') return event.text !== ''
  if (event.type === 'block_started') return event.block.type === 'tool_call'
  return event.type === 'block_sealed'
}
