import type { AnswerEvent, Piece } from '#formats/answer.ts'

import { AnswerBlocks } from './answer-blocks.ts'
import { AnswerStage, type DecideWindow } from './answer-stage.ts'
import type { AnswerWindow } from './answer-windows.ts'

type Arrived = { piece: IteratorResult<Piece> } | { error: unknown }

type Guarding = {
  readonly decide: DecideWindow
  /** The beginning of the answer, where the caller has written it. */
  readonly prefill: string
  /** Ends the answer at its source, so that no code waits for more of it. */
  interrupt(): void
}

/**
 * The pieces of an answer as far as guardrails let them leave, and as they rewrite them. Nothing is left to be passed on as it came.
 * What an upstream has sent before it failed is decided as far as it goes, and leaves before the error.
 */
export async function* guardPieces(
  pieces: AsyncIterable<Piece>,
  { decide, prefill, interrupt }: Guarding,
): AsyncGenerator<Piece> {
  const stage = new AnswerStage(decide, prefill)
  const source = pieces[Symbol.asyncIterator]()
  let next: Promise<Arrived> | null = null
  let last: Piece | undefined
  let failure: { error: unknown } | undefined
  let isRead = false

  /** What may leave now. Throws where a guardrail has ended the answer, once everything before that has left. */
  function takePiece(): Piece | null {
    const events = stage.take()
    if (last && events.length > 0) return rebuild(last, events)
    if (stage.error) throw stage.error
    return null
  }

  try {
    for (;;) {
      if (!isRead && !stage.isFull) next ??= source.next().then(toPiece, toFailure)
      const decisions = stage.nextDecisions
      if (!next && !decisions) break
      const decided = decisions?.then((each) => {
        return { apply: () => stage.apply(each) }
      })
      const arrived = await Promise.race([...(next ? [next] : []), ...(decided ? [decided] : [])])
      if ('apply' in arrived) arrived.apply()
      else {
        next = null
        if ('piece' in arrived && !arrived.piece.done) {
          last = arrived.piece.value
          for (const { events } of last.frames) stage.add(events)
        } else {
          isRead = true
          if ('error' in arrived) failure = arrived
          stage.end()
        }
      }
      for (let piece = takePiece(); piece; piece = takePiece()) yield piece
    }
    if (failure) throw failure.error
  } finally {
    if (next) {
      interrupt()
      await next
    }
    if (!isRead) await source.return?.()
  }
}

const toPiece = (piece: IteratorResult<Piece>) => ({ piece })
const toFailure = (error: unknown) => ({ error })

const rebuild = ({ format, frames }: Piece, events: readonly AnswerEvent[]): Piece => ({
  format,
  frames: frames.slice(-1).map(({ source }) => ({ events, source })),
  isRebuilt: true,
})

/** The same pieces, of which each window is shown to `onWindow` while they pass. */
export async function* watchPieces(
  pieces: AsyncIterable<Piece>,
  onWindow: (window: AnswerWindow) => void,
  prefill: string,
): AsyncGenerator<Piece> {
  const blocks = new AnswerBlocks(prefill, (_, window) => onWindow(window))
  for await (const piece of pieces) {
    for (const { events } of piece.frames) for (const event of events) blocks.read(event)
    yield piece
  }
  blocks.end()
}
