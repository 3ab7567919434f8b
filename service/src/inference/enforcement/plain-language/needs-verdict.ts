import type { SetRule } from '#policies/rules/set-rule.ts'

/** Whether calls depend on the judge's verdict on this rule. */
export const needsVerdict = ({ mode, rule }: SetRule) => mode === 'enforcing' && rule.needs.judge
