import type { GlassDeps } from '#access/two-persons/require-proposal.ts'
import type { MutationDeps } from '#http/bind-mutation.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import type { RuleCheck } from './rule.ts'
import type { JudgeText } from './trials/judge-trial.ts'
import type { ScoreTextFor, Scoring } from './trials/score-trial.ts'

/** What the endpoints of this folder depend on. */
export type PolicyDeps = MutationDeps &
  GlassDeps & {
    checkRule: RuleCheck
    engine: PatternEngine
    /** For trials of rules that read scores. */
    scoreTextFor: ScoreTextFor
    gridOf: Scoring['gridOf']
    /** For trials of rules in plain language. */
    judgeText: JudgeText
    /** Whether there is a judge for rules in plain language. */
    hasJudge(): boolean
    /** Whether that judge is a test double, which understands hardly any rule. */
    isJudgeScripted(): boolean
    /** How many policies an organization may have. */
    policiesMax: number
    /** What the patterns in force of an organization may cost together, for 8 KB. */
    patternCostMaxMs: number
  }
