/** Why a rule is not accepted: the end of a sentence that begins with the name of the field. */
type RuleProblem = string

/**
 * Checks the text of a rule before it is stored, and again before it is put in force. The policy engine
 * will parse, type-check and probe it; until then only its form is checked.
 */
export type RuleCheck = (rule: string) => Promise<RuleProblem | null>

type Rule = { form: 'expression' | 'gated' | 'plain'; exact: string; plain: string }

/** The form follows from the first characters that are not blank. */
export function readRule(text: string): Rule {
  const start = text.trimStart()
  if (start.startsWith('cel:')) return { form: 'expression', exact: start.slice(4), plain: '' }
  if (!start.startsWith('when:')) return { form: 'plain', exact: '', plain: start }
  const [gate = '', ...rest] = start.slice(5).split('\n')
  return { form: 'gated', exact: gate, plain: rest.join('\n') }
}

export const checkRuleForm: RuleCheck = async (text) => {
  const { form, exact, plain } = readRule(text)
  if (form !== 'plain' && exact.trim() === '') {
    return form === 'gated'
      ? "needs an expression after 'when:', on the first line"
      : "needs an expression after 'cel:'"
  }
  if (form === 'gated' && plain.trim() === '') return "needs plain language below its 'when:' line"
  return form === 'plain' && plain === '' ? 'must not be blank' : null
}
