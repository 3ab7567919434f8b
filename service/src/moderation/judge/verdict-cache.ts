import { createHash } from 'node:crypto'

import { SharedMap } from '#platform/caches/shared-map.ts'
import type { Clock } from '#platform/clock.ts'

import type { JudgedContent, JudgedRule } from './judge.ts'

const usualSizes = { entriesMax: 50_000, shareMax: 2500, ageMaxMs: 24 * 60 * 60 * 1000 }

/**
 * Caches verdicts: scores, under a hash of everything they depend on. No text is kept. Chats send their history again with each
 * message, so only new text has to be judged. Organizations do not see each other's entries.
 */
export function createVerdictCache(now: Clock, sizes = usualSizes) {
  const entries = new SharedMap<{ basisPoints: number; sinceMs: number }>(sizes)
  return {
    get(organizationId: string, key: string): number | undefined {
      const entry = entries.get(organizationId, key)
      if (!entry) return undefined
      const isOld = now().getTime() - entry.sinceMs >= sizes.ageMaxMs
      if (isOld) entries.delete(organizationId, key)
      // Marks the entry as the newest, because the least recently used one is dropped first.
      else entries.set(organizationId, key, entry)
      return isOld ? undefined : entry.basisPoints
    },
    set(organizationId: string, key: string, basisPoints: number) {
      entries.set(organizationId, key, { basisPoints, sinceMs: now().getTime() })
    },
  }
}
export type VerdictCache = ReturnType<typeof createVerdictCache>

/** Everything besides rule and content that a verdict depends on. */
export type JudgeState = { judgeId: string; promptVersion: string; calibrationVersion: string }
export type VerdictContent = JudgedContent & { readonly organizationId: string }

/**
 * Names verdicts on one content. The text of the rule is part of the name besides its version, because a draft that is
 * tried has no version yet. Equal questions at the same time are one call, so the organization is part of the name, too.
 */
export function verdictKeys(state: JudgeState, content: VerdictContent) {
  const fixed = [
    content.organizationId,
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

/** A digest of the UTF-16, because in UTF-8 all unpaired surrogates have the same bytes. */
const hash = (text: string) => createHash('sha256').update(text, 'utf16le').digest('base64')
