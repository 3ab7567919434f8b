import type { EarlierAnswer } from '#formats/texts/request-texts.ts'
import type { Findings } from '#inference/judging/verdicts/judgement.ts'
import {
  historyModerated,
  historyUnconfigured,
  requestUnscorable,
  requestUnscored,
} from '#inference/judging/verdicts/policy-refusal.ts'
import type { Category } from '#moderation/categories.ts'
import type { CallModeration, CategoryVerdict } from '#moderation/moderate.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { CategoryScores } from '#policies/rules/score.ts'

import { noteInHistory, toSegments } from './history-texts.ts'

type PlaceOf = (number: number) => string

/** What moderation does with earlier answers. */
export type ModeratedHistory = {
  checkLocally(answers: readonly EarlierAnswer[], placeOf: PlaceOf): Promise<ApiError | null>
  /** Throws what the caller is to be told. */
  checkRemotely(answers: readonly EarlierAnswer[], placeOf: PlaceOf): Promise<void>
  /** The scores that rules read. Once all answers are checked, nobody is asked for them again. */
  scoresOf(answer: EarlierAnswer): Promise<CategoryScores>
}

type Moderated = {
  checks: CallModeration
  /** The categories of which one ends the call; the configuration decides about others. */
  refused: readonly Category[]
  findings: Findings
  signal: AbortSignal
}

export function moderateHistory({
  checks,
  refused,
  findings,
  signal,
}: Moderated): ModeratedHistory {
  type Check = (answers: readonly EarlierAnswer[]) => Promise<CategoryVerdict>
  const locally: Check = (answers) => checks.checkLocally(answers.flatMap(toSegments), signal)
  const remotely: Check = (answers) => checks.checkRemotely(answers.flatMap(toSegments), signal)

  /** All are asked about together. Hardly ever something is found, and only then which of them it is in. */
  async function decide(answers: readonly EarlierAnswer[], check: Check, placeOf: PlaceOf) {
    const together = await check(answers)
    if (together.isDegraded) findings.isDegraded = true
    if (together.reached.length > 0) {
      findings.configured?.noteCategories(together.reached)
      for (const [number, answer] of answers.entries()) {
        const found = findRefused(await check([answer]), () => placeOf(number))
        if (!found) continue
        noteInHistory(findings, answer)
        return found
      }
    }
    if (together.isUnscorable) return requestUnscorable()
    return together.isUnavailable ? requestUnscored() : null
  }

  function findRefused({ reached }: CategoryVerdict, place: () => string): ApiError | null {
    const category = reached.find((each) => refused.includes(each))
    if (category) return historyModerated(findings, category, place())
    const { configured } = findings
    return reached.length > 0 && configured?.isEnforced
      ? historyUnconfigured(findings, configured, place())
      : null
  }

  return {
    checkLocally: (answers, placeOf) => decide(answers, locally, placeOf),
    async checkRemotely(answers, placeOf) {
      const refusal = await decide(answers, remotely, placeOf)
      if (refusal) throw refusal
    },
    async scoresOf(answer) {
      const [local, remote] = [await locally([answer]), await remotely([answer])]
      return new Map([...local.scores, ...remote.scores])
    },
  }
}
