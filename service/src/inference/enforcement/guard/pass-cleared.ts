import type { Piece, TakePiece } from '#formats/answer.ts'
import type { FrameTexts, TextReader } from '#formats/texts/frame-texts.ts'
import type { Ending } from '#inference/enforcement/check.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import type { AnswerGuard } from '#policies/guard/answer-guard.ts'
import type { GuardEnd } from '#policies/guard/guard-end.ts'

import { HeldFrames } from './held-frames.ts'
import { type OpenPieces, openPieces } from './open-pieces.ts'

/**
 * Wakes the code that waits for something to change: a verdict has come, or something has arrived that may leave. The promise is
 * made when something waits and settles with the next change: one that outlives many waits would keep what each of them has left on
 * it until the answer is over.
 */
export class Changes {
  #next: PromiseWithResolvers<void> | undefined

  /** Whether something waits for the next change. */
  get isAwaited(): boolean {
    return this.#next !== undefined
  }

  readonly announce = () => {
    const next = this.#next
    this.#next = undefined
    next?.resolve()
  }

  next(): Promise<void> {
    return (this.#next ??= Promise.withResolvers()).promise
  }
}

type Guarding = {
  guard: AnswerGuard<Ending>
  changes: Changes
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
async function waitForChange({ guard, changes, cancellation }: Guarding): Promise<void> {
  cancellation.throwIfCancelled()
  const timer = setTimeout(() => {
    guard.giveUp()
    changes.announce()
  }, standstillMostMs).unref()
  try {
    await changes.next()
  } finally {
    clearTimeout(timer)
  }
  cancellation.throwIfCancelled()
}

/**
 * Passes on the pieces of an answer as far as its guard clears them, and throws where the guard ends it. Pieces are shown to the
 * guard where they arrive, and this code is woken when something may leave: most frames of a stream only wait with others for
 * their window. Reading goes on while verdicts are awaited, so that neither waits for the other, unless too much waits for
 * them. What an upstream has sent before it failed is judged as far as it goes, and leaves before the error.
 */
export async function* passCleared(
  pieces: AsyncIterable<Piece>,
  guarding: Guarding,
): AsyncGenerator<Piece> {
  const { guard, changes, asker, cancellation, onEnd, toError } = guarding
  const waitForVerdict = () => waitForChange(guarding)
  const held = new HeldFrames(guard, waitForVerdict)
  const follower = { cancel: changes.announce }
  cancellation.add(follower)
  const shown = showWhereTheyArrive(held, guarding)
  const source = openPieces(pieces)
  const reading = new Reading(source, shown.take, changes.announce)
  let failure: { error: unknown } | undefined

  /** What may leave now. Throws where the guard has ended the answer, once everything before that has left. */
  function takeCleared(): Piece | undefined {
    const frames = held.take()
    if (shown.last && frames.length > 0) return { ...shown.last, frames }
    if (!guard.ended) return undefined
    throw failure && guard.ended.kind !== 'block' ? failure.error : toError(guard.ended)
  }

  // Things also change while a piece is passed on. So it is asked again what may leave, and nothing is awaited between that question
  // and the wait for the next change: a change that came in between would be missed.
  try {
    for (;;) {
      if (reading.state === 'paused') {
        // It may have paused while a piece was passed on. What has arrived is looked at before what follows.
        await shown.settle()
        reading.goOn()
      }
      if (reading.state === 'reading' && !held.mayLeave && !guard.ended) await changes.next()
      if (reading.state !== 'reading') {
        failure = reading.failure
        if (failure) break
        await shown.settle()
      }
      if (reading.state === 'over') break
      for (let piece = takeCleared(); piece; piece = takeCleared()) yield piece
    }
    // The caller is gone, or nothing may leave of a part of the answer.
    if (failure && (cancellation.isCancelled || guard.needsWhole)) throw failure.error
    await runInTurns(held.showRest(), asker)
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
    held.readRest()
    await close(reading.state === 'over' ? null : source, onEnd)
  }
}

/** Reads the pieces of an answer, as long as they are taken. */
class Reading {
  state: 'paused' | 'reading' | 'over' | 'failed' = 'paused'
  failure: { error: unknown } | undefined
  readonly #source: OpenPieces
  readonly #take: TakePiece
  readonly #onChange: () => void

  constructor(source: OpenPieces, take: TakePiece, onChange: () => void) {
    this.#source = source
    this.#take = take
    this.#onChange = onChange
  }

  goOn() {
    this.state = 'reading'
    void this.#read()
  }

  async #read() {
    try {
      this.state = (await this.#source.readWhile(this.#take)) ? 'over' : 'paused'
    } catch (error) {
      this.failure = { error }
      this.state = 'failed'
    }
    this.#onChange()
  }
}

/** Shows pieces to the guard in the callback in which they arrive. */
function showWhereTheyArrive(held: HeldFrames, guarding: Guarding) {
  const { guard, changes, asker, createReader, onTexts } = guarding
  let reader: TextReader | undefined
  let last: Piece | undefined
  /** Work on a piece that could not be done at once, or why the piece cannot be judged. */
  let adding: Promise<void> | undefined

  return {
    get last() {
      return last
    },
    /** Returns whether the next piece may follow: not while what may leave waits for a caller who reads slowly. */
    take(piece: Piece): boolean {
      last = piece
      try {
        reader ??= createReader(piece)
        const steps = held.add(piece, reader, onTexts)
        adding = steps && (runInTurns(steps, asker) as Promise<void> | undefined)
      } catch (error) {
        adding = Promise.reject(error as Error)
      }
      adding?.catch(() => undefined) // `settle` awaits it, which may be after it has failed
      if (adding || guard.ended) return false
      if (!held.mayLeave) return true
      const isAwaited = changes.isAwaited
      changes.announce()
      return isAwaited
    },
    async settle() {
      const waiting = adding
      adding = undefined
      await waiting
    },
  }
}

async function close(unread: OpenPieces | null, onEnd: () => Promise<void>) {
  try {
    await unread?.close()
  } finally {
    await onEnd()
  }
}
