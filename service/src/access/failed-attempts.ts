import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'

type Guesser = {
  windowStartMs: number
  /** Different unknown keys in this window: a client that repeats one wrong key is not guessing. */
  guesses: Set<string>
  blockedUntilMs: number
  blocks: number
}

type Options = { now: Clock; guessesMax: number; onRefused: () => void; guessersMax?: number }

const windowMs = 60_000
const blockMaxMs = 15 * 60_000

/**
 * Slows down whoever tries unknown keys. After `guessesMax` different ones within a minute a guesser is
 * blocked for a minute, then twice as long each time. The count is kept by this process alone
 * and in bounded memory: it needs no store, so it cannot fail open.
 */
export function createFailedAttempts({
  now,
  guessesMax,
  onRefused,
  guessersMax = 10_000,
}: Options) {
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
    }
    // Deleting first moves it to the end, so that the least recently active falls out.
    guessers.delete(name)
    guessers.set(name, fresh)
    const [oldest] = guessers.keys()
    if (guessers.size > guessersMax && oldest !== undefined) guessers.delete(oldest)
    return fresh
  }

  return {
    /** Refuses with 429 while this guesser is blocked. */
    refuseBlocked(name: string) {
      const nowMs = now().getTime()
      const blockedMs = (guessers.get(name)?.blockedUntilMs ?? 0) - nowMs
      if (blockedMs <= 0) return
      onRefused()
      throw new ApiError(
        'rate_limit_exceeded',
        'Too many unknown keys were tried from here. Wait, then send a valid key.',
        { headers: { 'retry-after': String(Math.ceil(blockedMs / 1000)) } },
      )
    },
    note(name: string, guess: string) {
      const guesser = guesserAt(name)
      guesser.guesses.add(guess)
      if (guesser.guesses.size < guessesMax || guesser.blockedUntilMs > now().getTime()) return
      const blockMs = Math.min(windowMs * 2 ** guesser.blocks, blockMaxMs)
      guesser.blocks++
      guesser.blockedUntilMs = now().getTime() + blockMs
    },
  }
}
export type FailedAttempts = ReturnType<typeof createFailedAttempts>
