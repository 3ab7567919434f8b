import type { PolicyDeps } from '#policies/deps.ts'
import { readRule } from '#policies/rules/read-rule.ts'

const scriptedJudge =
  "The judge of this gateway is a test double: of a rule in plain language it only looks for what is in quotation marks. Set 'judge' in MODERATION_FILE to a model before you rely on the rule."

/** What administrators should know about the verdicts on a rule, as a member of an answer. */
export const warningsFor = (
  rule: string,
  { isJudgeScripted }: Pick<PolicyDeps, 'isJudgeScripted'>,
) =>
  readRule(rule).form !== 'expression' && isJudgeScripted() ? { warnings: [scriptedJudge] } : {}
