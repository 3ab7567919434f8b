import type { EarlierAnswer } from '#formats/texts/request-texts.ts'
import type { Findings } from '#inference/enforcement/findings.ts'
import {
  historyModerated,
  historyUnconfigured,
  requestUnscorable,
  requestUnscored,
} from '#inference/enforcement/refusals.ts'
import type { Category } from '#moderation/categories.ts'
import type { CallModeration, CategoryVerdict } from '#moderation/moderate.ts'
import type { Segment } from '#moderation/scorer.ts'
import type { ApiError } from '#platform/api-error.ts'
import { type Asker, runInTurns, type Steps } from '#platform/steps/steps.ts'
import type { ScoreMap } from '#policies/rules/score.ts'

import { noteInHistory, toSegments } from './history-texts.ts'

type PlaceOf = (number: number) => string

/** What moderation does with earlier answers. */
export type ModeratedHistory = {
  checkLocally(answers: readonly EarlierAnswer[], placeOf: PlaceOf): Promise<ApiError | null>
  checkRemotely(answers: readonly EarlierAnswer[], placeOf: PlaceOf): Promise<ApiError | null>
  /** The scores that rules read. They are known once all answers have been checked. */
  scoresOf(answer: EarlierAnswer): Promise<ScoreMap>
}

type Moderated = {
  checks: CallModeration
  /** The categories that refuse the call. The configuration decides about all others. */
  refused: readonly Category[]
  findings: Findings
  asker: Asker
}

/** In steps: a request may have thousands of earlier answers. */
function* toAll(answers: readonly EarlierAnswer[]): Steps<Segment[]> {
  const segments: Segment[] = []
  for (const answer of answers) {
    for (const segment of toSegments(answer)) segments.push(segment)
    yield
  }
  return segments
}

export function moderateHistory({ checks, refused, findings, asker }: Moderated): ModeratedHistory {
  type Check = (answers: readonly EarlierAnswer[]) => Promise<CategoryVerdict>
  const segmentsOf = (answers: readonly EarlierAnswer[]) => runInTurns(toAll(answers), asker)
  const locally: Check = async (answers) =>
    checks.checkLocally(await segmentsOf(answers), asker.signal)
  const remotely: Check = async (answers) =>
    checks.checkRemotely(await segmentsOf(answers), asker.signal)

  /** Asks about all answers together. Something is found only rarely, and only then each answer is looked at alone. */
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
    checkRemotely: (answers, placeOf) => decide(answers, remotely, placeOf),
    async scoresOf(answer) {
      const [local, remote] = [await locally([answer]), await remotely([answer])]
      return new Map([...local.scores, ...remote.scores])
    },
  }
}
