import type { ThreadPool } from '#platform/thread-pool.ts'
import { ranTooLong } from '#platform/thread-pool.ts'
import type { RuleCheck } from '#policies/rule.ts'
import type { PatternCost } from '#text/pattern-cost.ts'
import type { PatternComplaint } from '#text/pattern-shape.ts'

import { placeComplaint } from './complaint.ts'
import { describeComplaint, readUncompiled } from './rule-program.ts'

type Deps = { threads: ThreadPool }

/** For 8 KB of a text that is hard for the pattern. */
const searchMaxMs = 5
/** For 8 KB of the pattern's own words. Ordinary patterns such as `key.{0,200}secret` need 40 ms for them. */
const ownWordsMaxMs = 60
const compileMaxMs = 100
/** For all patterns of a rule: every process compiles them before the rule is in force. */
const compileTotalMaxMs = 400
/** A hostile pattern can take seconds. The wait is longer than all probes of a rule that has as many as allowed. */
const terms = { waitMs: 15_000, runMs: 2000 }
const rememberedMax = 10_000

/**
 * Checks a rule that somebody has written: also that no pattern of it takes long. Only worker threads compile its
 * patterns, because nobody knows yet how long that takes.
 */
export function createRuleCheck({ threads }: Deps): RuleCheck {
  // What an affordable pattern costs. One that was too slow is measured again: the machine may have been busy.
  const affordable = new Map<string, PatternCost>()

  function remember(pattern: string, cost: PatternCost) {
    if (affordable.has(pattern)) return
    const [oldest] = affordable.keys()
    if (oldest !== undefined && affordable.size >= rememberedMax) affordable.delete(oldest)
    affordable.set(pattern, cost)
  }

  return async (rule, organizationId) => {
    const read = readUncompiled(rule)
    if (typeof read === 'string') return read
    let compileTotalMs = 0
    for (const [pattern, offset] of read.patternOffsets) {
      const cost = affordable.get(pattern) ?? (await measure(pattern, organizationId, threads))
      if ('problem' in cost) return placeComplaint(rule, offset, describeComplaint(cost))
      const problem = findCostProblem(cost)
      if (problem !== null) return placeComplaint(rule, offset, problem)
      remember(pattern, cost)
      compileTotalMs += cost.compileMs
      if (compileTotalMs > compileTotalMaxMs) {
        return placeComplaint(rule, offset, 'the patterns up to this one take too long to compile')
      }
    }
    return null
  }
}

function findCostProblem({ compileMs, searchMs, ownWordsMs }: PatternCost): string | null {
  if (searchMs > searchMaxMs || ownWordsMs > ownWordsMaxMs) {
    return 'the pattern takes too long on some texts'
  }
  return compileMs > compileMaxMs ? 'the pattern takes too long to compile' : null
}

const endless: PatternCost = { compileMs: Infinity, searchMs: Infinity, ownWordsMs: Infinity }

/** The cost of a pattern, measured in a worker thread (`thread.ts`), which is ended when it takes too long. */
async function measure(
  pattern: string,
  owner: string,
  threads: ThreadPool,
): Promise<PatternCost | PatternComplaint> {
  const { signal } = new AbortController()
  try {
    const measured = await threads.run('probePattern', { pattern }, { ...terms, owner, signal })
    return measured as PatternCost | PatternComplaint
  } catch (thrown) {
    if (ranTooLong(thrown)) return endless
    throw thrown
  }
}
