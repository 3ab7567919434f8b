import type { Piece } from '#formats/answer.ts'
import type { FrameTexts, TextReader } from '#formats/texts/frame-texts.ts'
import type { Ending } from '#inference/enforcement/check.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import type { AnswerGuard } from '#policies/guard/answer-guard.ts'
import type { GuardEnd } from '#policies/guard/guard-end.ts'

import { HeldFrames } from './held-frames.ts'

/** Wakes the code that waits for verdicts when one has come. */
export class LateVerdicts {
  #arrival = Promise.withResolvers<'verdict'>()

  readonly announce = () => {
    this.#arrival.resolve('verdict')
    this.#arrival = Promise.withResolvers()
  }

  next(): Promise<'verdict'> {
    return this.#arrival.promise
  }
}

type Guarding = {
  guard: AnswerGuard<Ending>
  verdicts: LateVerdicts
  asker: Asker
  /** Of the call: it ends every wait for a verdict. */
  cancellation: Cancellation
  createReader(first: Piece): TextReader
  onTexts(texts: FrameTexts): void
  /** Called once, however the answer ends. */
  onEnd(): Promise<void>
  toError(end: GuardEnd<Ending>): ApiError
}

/**
 * How long an answer may stand still without any progress. A long one may take as long as it needs while verdicts keep coming:
 * the length of answers is bounded, and so is the time of each verdict.
 */
const standstillMostMs = 30_000

/** Waits for the next change that the guard reports. Throws where the call is given up, and gives up the answer after a while. */
async function waitForChange({ guard, verdicts, cancellation }: Guarding): Promise<void> {
  cancellation.throwIfCancelled()
  const timer = setTimeout(() => {
    guard.giveUp()
    verdicts.announce()
  }, standstillMostMs).unref()
  try {
    await verdicts.next()
  } finally {
    clearTimeout(timer)
  }
  cancellation.throwIfCancelled()
}

/**
 * Passes on the pieces of an answer as far as its guard clears them, and throws where the guard ends it. While verdicts are
 * awaited the next piece is read already, so that neither waits for the other, unless too much waits for them. What an
 * upstream has sent before it failed is judged as far as it goes, and leaves before the error.
 */
export async function* passCleared(
  pieces: AsyncIterable<Piece>,
  guarding: Guarding,
): AsyncGenerator<Piece> {
  const { guard, verdicts, asker, cancellation, createReader, onTexts, onEnd, toError } = guarding
  const waitForVerdict = () => waitForChange(guarding)
  const held = new HeldFrames(guard, waitForVerdict)
  const follower = { cancel: verdicts.announce }
  cancellation.add(follower)
  let reader: TextReader | undefined
  const source = pieces[Symbol.asyncIterator]()
  let last: Piece | undefined
  let next: Promise<IteratorResult<Piece>> | undefined
  let failure: { error: unknown } | undefined
  let isRead = false

  /** What may leave now. Throws where the guard has ended the answer, once everything before that has left. */
  function takeCleared(): Piece | undefined {
    const frames = held.take()
    if (last && frames.length > 0) return { ...last, frames }
    if (!guard.ended) return undefined
    throw failure && guard.ended.kind !== 'block' ? failure.error : toError(guard.ended)
  }

  // Verdicts also come while a piece is passed on. So it is asked again what may leave, and nothing is awaited between
  // that question and the wait for the next verdict: a verdict that came in between would be missed.
  try {
    for (;;) {
      next ??= source.next()
      let arrived
      try {
        arrived = await (guard.isWaiting ? Promise.race([next, verdicts.next()]) : next)
      } catch (error) {
        failure = { error }
        break
      }
      if (arrived !== 'verdict') {
        next = undefined
        if (arrived.done) {
          isRead = true
          break
        }
        last = arrived.value
        reader ??= createReader(last)
        const added = runInTurns(held.add(last, reader, onTexts), asker)
        if (added) await added
      }
      for (let piece = takeCleared(); piece; piece = takeCleared()) yield piece
    }
    // The caller is gone, or nothing may leave of a part of the answer.
    if (failure && (cancellation.isCancelled || guard.needsWhole)) throw failure.error
    await runInTurns(guard.endChannels(), asker)
    // Some rules also judge that an answer is over, which this one is not.
    if (!failure) guard.end()
    for (;;) {
      for (let piece = takeCleared(); piece; piece = takeCleared()) yield piece
      if (!guard.isWaiting) break
      await waitForVerdict()
    }
    if (failure) throw failure.error
  } finally {
    guard.stop()
    cancellation.remove(follower)
    next?.catch(() => undefined) // the answer is over, however that read ends
    await close(isRead ? null : source, onEnd)
  }
}

async function close(unread: AsyncIterator<Piece> | null, onEnd: () => Promise<void>) {
  try {
    await unread?.return?.()
  } finally {
    await onEnd()
  }
}
