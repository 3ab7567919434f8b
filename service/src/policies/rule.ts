/** Why a rule is not accepted: the end of a sentence that begins with the name of the field. */
export type RuleProblem = string

/** What a check has found: a problem, or what each pattern costs, in the order in which the rule has them (milliseconds for 8 KB). */
type CheckedRule =
  | { readonly problem: RuleProblem }
  | { readonly problem: null; readonly patternCosts: readonly number[] }

/** Checks the text of a rule before it is stored, and again before it is published. Organizations share the time that checks take. */
export type RuleCheck = (rule: string, organizationId: string) => Promise<CheckedRule>
