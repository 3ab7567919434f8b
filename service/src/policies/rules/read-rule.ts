import type { RuleProblem } from '#policies/rule.ts'

type Rule = {
  form: 'expression' | 'gated' | 'plain'
  exact: string
  /** Where `exact` begins in the text of the rule. */
  exactOffset: number
  plain: string
}

/** The form follows from the first characters that are not blank. */
export function readRule(text: string): Rule {
  const start = text.trimStart()
  const indent = text.length - start.length
  if (start.startsWith('cel:')) {
    return { form: 'expression', exact: start.slice(4), exactOffset: indent + 4, plain: '' }
  }
  if (!start.startsWith('when:')) return { form: 'plain', exact: '', exactOffset: 0, plain: start }
  const [gate = '', ...rest] = start.slice(5).split('\n')
  return { form: 'gated', exact: gate, exactOffset: indent + 5, plain: rest.join('\n') }
}

/** What is missing in a rule, whatever its expression says. */
export function findFormProblem({ form, exact, plain }: Rule): RuleProblem | null {
  if (form !== 'plain' && exact.trim() === '') {
    return form === 'gated'
      ? "needs an expression after 'when:', on the first line"
      : "needs an expression after 'cel:'"
  }
  if (form === 'gated' && plain.trim() === '') return "needs plain language below its 'when:' line"
  return form === 'plain' && plain === '' ? 'must not be blank' : null
}
