import type { Piece } from '#formats/answer.ts'
import { answerTooLarge, plainMaxBytes } from '#inference/upstreams/upstream-failure.ts'

import type { Replacement } from './replacement.ts'
import { answerWith, SentBlocks } from './sent-blocks.ts'

/** What stands for the answer that ended with this error; null: nothing does. */
type ReplaceError = (error: unknown) => Promise<Replacement | null>

/**
 * Passes on a streamed answer as far as its guard lets it; where the guard ends it, the replacement follows as a block of its own.
 * All of the answer is written anew, because the stream of a provider cannot be continued with frames of our own.
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

/** Passes on an answer that is sent as a whole: as it is, or, where the guard ends it, the replacement and nothing of it. */
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
