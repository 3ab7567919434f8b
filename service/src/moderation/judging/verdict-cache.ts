import { createHash } from 'node:crypto'

import type { JudgedContent, JudgedRule } from '#moderation/judge.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

const entriesMax = 50_000
const ageMaxMs = 24 * 60 * 60 * 1000

/**
 * What judges have said: scores, under a hash of everything they depend on. No text is kept. Chats send their history again
 * with each message, so that only what is new has to be judged.
 */
export function createVerdictCache(now: Clock, sizes = { entriesMax, ageMaxMs }) {
  const entries = new BoundedMap<string, { basisPoints: number; sinceMs: number }>(sizes.entriesMax)
  return {
    get(key: string): number | undefined {
      const entry = entries.get(key)
      if (!entry) return undefined
      const isOld = now().getTime() - entry.sinceMs >= sizes.ageMaxMs
      if (isOld) entries.delete(key)
      else entries.set(key, entry) // the newest again: what is dropped first is what nobody asks for
      return isOld ? undefined : entry.basisPoints
    },
    set(key: string, basisPoints: number) {
      entries.set(key, { basisPoints, sinceMs: now().getTime() })
    },
  }
}
export type VerdictCache = ReturnType<typeof createVerdictCache>

/** Everything besides rule and content that a verdict depends on. */
export type JudgeState = { judgeId: string; promptVersion: string; calibrationVersion: string }

/**
 * Names verdicts on one content. The text of the rule is part of the name besides its version, because a draft that is
 * tried has no version yet. The policy's id keeps organizations apart.
 */
export function verdictKeys(state: JudgeState, content: JudgedContent) {
  const fixed = [
    state.judgeId,
    state.promptVersion,
    state.calibrationVersion,
    content.direction,
    hash(content.context),
    hash(content.text),
  ]
  return ({ policyId, version, text }: JudgedRule): string =>
    hash(JSON.stringify([...fixed, policyId, version, hash(text)]))
}

/** Of its UTF-16: in UTF-8 all halves of surrogate pairs are the same. */
const hash = (text: string) => createHash('sha256').update(text, 'utf16le').digest('base64')
