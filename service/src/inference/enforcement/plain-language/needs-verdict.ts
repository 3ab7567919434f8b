import type { SetRule } from '#policies/rules/set-rule.ts'

/** Whether calls depend on what the judge says of this rule. */
export const needsVerdict = ({ mode, rule }: SetRule) => mode === 'enforcing' && rule.needs.judge
