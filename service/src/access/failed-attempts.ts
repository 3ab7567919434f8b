import { rateLimitExceeded } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'

type Guesser = {
  windowStartMs: number
  /** Different unknown keys in this window: a client that repeats one wrong key is not guessing. */
  guesses: Set<string>
  blockedUntilMs: number
  blocks: number
  /** When a key was last looked up in spite of the block. */
  triedAtMs: number
}

type Options = {
  now: Clock
  /** What guesses are counted by, for the message. */
  what: string
  guessesMax: number
  /** What the guesses are, for the message. */
  guess?: string
  onRefused: () => void
  guessersMax?: number
}

const windowMs = 60_000
const blockMaxMs = 15 * 60_000
const tryEveryMs = 1000

/**
 * Slows down whoever tries unknown keys. After `guessesMax` different ones within a minute a guesser is
 * blocked for a minute, then twice as long each time. One key a second is still looked up: behind a
 * shared address there may be others, whose keys this process has not seen yet. The count is kept by this process alone
 * and in bounded memory: it needs no store, so it cannot fail open.
 */
export function createFailedAttempts(options: Options) {
  const { now, what, guessesMax, onRefused, guess = 'unknown keys', guessersMax = 10_000 } = options
  const guessers = new Map<string, Guesser>()

  function guesserAt(name: string): Guesser {
    const nowMs = now().getTime()
    const found = guessers.get(name)
    if (found && nowMs - found.windowStartMs < windowMs) return found
    const isRepeat = found && nowMs < found.blockedUntilMs + windowMs
    const fresh: Guesser = {
      windowStartMs: nowMs,
      guesses: new Set(),
      blockedUntilMs: isRepeat ? found.blockedUntilMs : 0,
      blocks: isRepeat ? found.blocks : 0,
      triedAtMs: found?.triedAtMs ?? 0,
    }
    // Deleting first moves it to the end, so that the least recently active falls out.
    guessers.delete(name)
    guessers.set(name, fresh)
    const [oldest] = guessers.keys()
    if (guessers.size > guessersMax && oldest !== undefined) guessers.delete(oldest)
    return fresh
  }

  return {
    /** Refuses with 429 while this guesser is blocked, but for one try a second. */
    refuseBlocked(name: string) {
      const nowMs = now().getTime()
      const guesser = guessers.get(name)
      const blockedMs = (guesser?.blockedUntilMs ?? 0) - nowMs
      if (!guesser || blockedMs <= 0) return
      if (nowMs - guesser.triedAtMs >= tryEveryMs) {
        guesser.triedAtMs = nowMs
        return
      }
      onRefused()
      throw rateLimitExceeded({
        what: guess,
        where: what,
        limit: guessesMax,
        waitMs: blockedMs,
        now: now(),
      })
    },
    note(name: string, guess: string) {
      const guesser = guesserAt(name)
      guesser.guesses.add(guess)
      if (guesser.guesses.size < guessesMax || guesser.blockedUntilMs > now().getTime()) return
      const blockMs = Math.min(windowMs * 2 ** guesser.blocks, blockMaxMs)
      guesser.blocks++
      guesser.blockedUntilMs = now().getTime() + blockMs
      guesser.triedAtMs = now().getTime()
    },
  }
}
export type FailedAttempts = ReturnType<typeof createFailedAttempts>
