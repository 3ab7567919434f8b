import type { Piece } from '#formats/answer.ts'
import { answerTooLarge, plainMaxBytes } from '#inference/upstreams/upstream-failure.ts'

import type { Replacement } from './replacement.ts'
import { answerWith, SentBlocks } from './sent-blocks.ts'

/** Returns the replacement for the answer that ended with this error; null if there is none. */
type ReplaceError = (error: unknown) => Promise<Replacement | null>

/**
 * Passes on a streamed answer as far as its guard lets it. If the guard ends it, the replacement follows as a block of its own.
 * The whole answer is written anew, because a provider's stream cannot be continued with our own frames.
 */
export async function* replaceInStream(
  guarded: AsyncIterable<Piece>,
  replace: ReplaceError,
): AsyncGenerator<Piece> {
  const sent = new SentBlocks()
  try {
    for await (const piece of guarded) {
      sent.note(piece)
      yield { ...piece, isRebuilt: true }
    }
  } catch (error) {
    const replacement = sent.isFinished ? null : await replace(error)
    if (!replacement) throw error
    yield sent.endWith(replacement.text)
  }
}

/** Passes on an answer that is sent as a whole. If the guard ends it, only the replacement is sent. */
export async function* replaceWhole(
  guarded: AsyncIterable<Piece>,
  replace: ReplaceError,
): AsyncGenerator<Piece> {
  const pieces: Piece[] = []
  let bytes = 0
  try {
    for await (const piece of guarded) {
      pieces.push(piece)
      for (const { source } of piece.frames) bytes += source.bytes.length
      if (bytes > plainMaxBytes) throw answerTooLarge()
    }
  } catch (error) {
    const replacement = await replace(error)
    if (!replacement) throw error
    yield answerWith(replacement.text)
    return
  }
  yield* pieces
}
