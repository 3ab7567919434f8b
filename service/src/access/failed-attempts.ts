import { rateLimitExceeded } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

type Guesser = {
  windowStartMs: number
  /** The different guesses in this window: a client that repeats one wrong key is not guessing. */
  guesses: Set<string>
  blockedUntilMs: number
  blocks: number
  /** When a guess was last let through in spite of the block. */
  triedAtMs: number
}

type Options = {
  now: Clock
  steadyNow: Clock
  /** What guesses are counted by, such as 'address'; part of the error message. */
  countedBy: string
  guessesMax: number
  /** What is guessed, such as 'unknown keys'; part of the error message. */
  guessKind?: string
  onRefused: () => void
  guessersMax?: number
}

const windowMs = 60_000
const blockMaxMs = 15 * 60_000
const tryEveryMs = 1000

/**
 * Slows down callers that try unknown keys. After `guessesMax` different guesses within a minute a guesser
 * is blocked for a minute, then twice as long each time. One guess a second is still let through: clients
 * with valid keys that this process has not seen yet may share the address. Counts are kept per process, in
 * bounded memory: without a store to lose, the limit cannot fail open.
 */
export function createFailedAttempts(options: Options) {
  const { now, steadyNow, countedBy, guessesMax, onRefused, guessKind = 'unknown keys' } = options
  const guessers = new BoundedMap<string, Guesser>(options.guessersMax ?? 10_000)

  function findOrAddGuesser(name: string): Guesser {
    const nowMs = steadyNow().getTime()
    const found = guessers.get(name)
    if (found && nowMs - found.windowStartMs < windowMs) return found
    const isRepeat = found && nowMs < found.blockedUntilMs + windowMs
    const added: Guesser = {
      windowStartMs: nowMs,
      guesses: new Set(),
      blockedUntilMs: isRepeat ? found.blockedUntilMs : 0,
      blocks: isRepeat ? found.blocks : 0,
      triedAtMs: found?.triedAtMs ?? 0,
    }
    guessers.set(name, added)
    return added
  }

  return {
    /** Throws a 429 while this guesser is blocked, except for one guess a second. */
    refuseBlocked(name: string) {
      const nowMs = steadyNow().getTime()
      const guesser = guessers.get(name)
      const blockedMs = (guesser?.blockedUntilMs ?? 0) - nowMs
      if (!guesser || blockedMs <= 0) return
      if (nowMs - guesser.triedAtMs >= tryEveryMs) {
        guesser.triedAtMs = nowMs
        return
      }
      onRefused()
      throw rateLimitExceeded({
        what: guessKind,
        where: countedBy,
        limit: guessesMax,
        waitMs: blockedMs,
        now: now(),
      })
    },
    note(name: string, guess: string) {
      const guesser = findOrAddGuesser(name)
      guesser.guesses.add(guess)
      if (guesser.guesses.size < guessesMax || guesser.blockedUntilMs > steadyNow().getTime())
        return
      const blockMs = Math.min(windowMs * 2 ** guesser.blocks, blockMaxMs)
      guesser.blocks++
      guesser.blockedUntilMs = steadyNow().getTime() + blockMs
      guesser.triedAtMs = steadyNow().getTime()
    },
  }
}
export type FailedAttempts = ReturnType<typeof createFailedAttempts>
