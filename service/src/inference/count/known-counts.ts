import { hash } from 'node:crypto'

import type { Encoding } from '#tokens/ranks.ts'

/** Below this many characters counting again is as quick as looking it up. */
const charactersMin = 512

/**
 * Remembers how many tokens texts have: chats send their history again with every message. Only hashes
 * are kept. The text that was not asked for the longest is forgotten first.
 */
export function createKnownCounts({ entriesMax }: { entriesMax: number }) {
  const counts = new Map<string, number>()

  return {
    /** Null: too short to be remembered. */
    keyOf(encoding: Encoding, text: string): string | null {
      return text.length < charactersMin ? null : encoding + hash('sha256', text, 'base64')
    },
    find(key: string): number | undefined {
      const count = counts.get(key)
      if (count === undefined) return undefined
      counts.delete(key)
      counts.set(key, count)
      return count
    },
    remember(key: string, count: number) {
      counts.delete(key)
      counts.set(key, count)
      const oldest = counts.size > entriesMax ? counts.keys().next().value : undefined
      if (oldest !== undefined) counts.delete(oldest)
    },
  }
}
export type KnownCounts = ReturnType<typeof createKnownCounts>
