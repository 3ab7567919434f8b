/** Why a rule is not accepted: the end of a sentence that begins with the name of the field. */
export type RuleProblem = string

/** Checks the text of a rule before it is stored, and again before it is published. Organizations share the time that checks take. */
export type RuleCheck = (rule: string, organizationId: string) => Promise<RuleProblem | null>
