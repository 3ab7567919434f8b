import type { JudgedRule } from './judge.ts'

/** A group is screened in one call. Models are good at one rule and poor at many. */
const groupTokensMax = 2500
/** A longer rule is asked about alone from the start. */
const screenedTokensMax = 1500
/** From this score on a rule is asked about again, alone, and only that answer counts. */
const secondLookBasisPoints = 2000

export type Group = readonly [JudgedRule, ...JudgedRule[]]

/**
 * Groups the rules that are asked about together. A group of one is asked about only once. The same rules give the same groups
 * in any order, so that the judge's server can reuse the beginning of the prompt.
 */
export function groupRules(rules: readonly JudgedRule[], rulesPerCall: number): Group[] {
  const groups: Group[] = []
  let group: JudgedRule[] = []
  let groupTokens = 0
  const close = () => {
    const [first, ...others] = group
    if (first) groups.push([first, ...others])
    group = []
    groupTokens = 0
  }
  for (const rule of rules.toSorted(byPolicyId)) {
    const tokens = estimateTokens(rule.text)
    if (tokens > screenedTokensMax) {
      groups.push([rule])
      continue
    }
    if (group.length >= rulesPerCall || groupTokens + tokens > groupTokensMax) close()
    group.push(rule)
    groupTokens += tokens
  }
  close()
  return groups
}

export const needsSecondLook = (basisPoints: number): boolean =>
  basisPoints >= secondLookBasisPoints

/** Compared by their bytes, because a locale's order may differ between machines. */
const byPolicyId = (one: JudgedRule, other: JudgedRule) =>
  one.policyId < other.policyId ? -1 : one.policyId > other.policyId ? 1 : 0

/** Close enough for a limit: English has about four bytes of UTF-8 per token, and other languages have more bytes per character. */
export const estimateTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)
