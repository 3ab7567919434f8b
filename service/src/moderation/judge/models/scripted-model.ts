import type { JudgeModel } from './judge-model.ts'

const marker = /\[\[rule:([a-z0-9_]{1,64})=([01](?:\.\d{1,6})?)\]\]/g
const quotation = /"([^"\n]{1,100})"|“([^”\n]{1,100})”/g

/**
 * For tests and demonstrations. A rule is about the words that it has in quotation marks, so that a first rule can be tried. A
 * text may also say itself how much it matches a policy, as in `[[rule:<policy id>=0.9]]`. Nothing else matches. No model is
 * asked, so it must not guard anything.
 */
export function createScriptedModel(): JudgeModel {
  return {
    promptVersion: 'scripted-2',
    rulesPerCall: 6,
    isLocal: true,
    async ask(rules, { text }) {
      const scores = new Map<string, number>()
      for (const [, policyId = '', value] of text.matchAll(marker))
        scores.set(policyId, Math.max(scores.get(policyId) ?? 0, Math.min(1, Number(value))))
      const lowerCase = text.toLowerCase()
      return rules.map(
        (rule) => scores.get(rule.policyId) ?? (quotesSomethingIn(lowerCase, rule.text) ? 0.95 : 0),
      )
    },
  }
}

const quotesSomethingIn = (lowerCase: string, rule: string): boolean =>
  [...rule.matchAll(quotation)].some(([, straight, curly]) =>
    lowerCase.includes((straight ?? curly ?? '').toLowerCase()),
  )
