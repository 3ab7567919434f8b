import type { Asking } from './ask-model.ts'
import type { Calibration } from './calibration.ts'
import { endAll } from './end-all.ts'
import { type Group, needsSecondLook } from './group-rules.ts'
import type { JudgeCall, JudgedContent, JudgedRule } from './judge.ts'
import { createSharedCalls } from './shared-calls.ts'

/** How a score was found. */
type Source = 'cached' | 'screened' | 'alone'

/** A piece of a text on its way through the judge. */
export type JudgedPiece = {
  readonly content: JudgedContent
  readonly call: JudgeCall
  /** Whether the text has other pieces. */
  readonly isOneOfMany: boolean
  /** Names the verdict on a rule. */
  keyOf(rule: JudgedRule): string
  /** The verdicts that are known already. */
  recall(rule: JudgedRule): number | undefined
  settle(rule: JudgedRule, basisPoints: number, source: Source): void
}

type Options = { judgeId: string; calibration: Calibration; asking: Asking }

/**
 * Judges a text by a group of rules in two looks. The group is screened in one call. A rule that may match is asked about
 * again, alone, and that score counts. A question that is already being asked is not asked twice.
 */
export function createTwoLooks({ judgeId, calibration, asking }: Options) {
  const share = createSharedCalls<readonly number[]>()

  /** Basis points in the order of the rules. */
  async function askAbout(rules: readonly JudgedRule[], piece: JudgedPiece) {
    const { content, call, keyOf, isOneOfMany } = piece
    const raw = await share(rules.map(keyOf).join(' '), call.signal, (signal) =>
      asking.ask({ rules, content, isOneOfMany }, { ...call, signal }),
    )
    return raw.map((score) => calibration.toBasisPoints(judgeId, score))
  }

  async function judgeAlone(rule: JudgedRule, piece: JudgedPiece) {
    for (const basisPoints of await askAbout([rule], piece))
      piece.settle(rule, basisPoints, 'alone')
  }

  /** Finds the score of every rule of the group; throws only after every question has ended. */
  return async (group: Group, piece: JudgedPiece): Promise<void> => {
    const open = new Set(group.filter((rule) => !settleFromCache(rule, piece)))
    if (open.size === 0) return
    if (group.length === 1) return judgeAlone(group[0], piece)
    // Asks about all rules of the group, even those with known verdicts, because the judge's server may have cached this
    // beginning of the prompt.
    const scores = await askAbout(group, piece)
    const suspected: JudgedRule[] = []
    for (const [index, basisPoints] of scores.entries()) {
      const rule = group[index]
      if (!rule || !open.has(rule)) continue
      if (needsSecondLook(basisPoints)) suspected.push(rule)
      else piece.settle(rule, basisPoints, 'screened')
    }
    if (suspected.length > 0) piece.call.questions?.add(suspected.length)
    await endAll(suspected.map((rule) => judgeAlone(rule, piece)))
  }
}

function settleFromCache(rule: JudgedRule, { recall, settle }: JudgedPiece): boolean {
  const basisPoints = recall(rule)
  if (basisPoints !== undefined) settle(rule, basisPoints, 'cached')
  return basisPoints !== undefined
}
