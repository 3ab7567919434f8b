import type { JudgeModel } from './judge-model.ts'

const marker = /\[\[rule:([a-z0-9_]{1,64})=([01](?:\.\d{1,6})?)\]\]/g

/**
 * For tests and demonstrations: a text says itself how much it matches a policy, as in `[[rule:<policy id>=0.9]]`; without
 * such a marker it does not match. No model is asked, so it must not guard anything.
 */
export function createScriptedModel(): JudgeModel {
  return {
    promptVersion: 'scripted-1',
    rulesPerCall: 6,
    isLocal: true,
    async ask(rules, { text }) {
      const scores = new Map<string, number>()
      for (const [, policyId = '', value] of text.matchAll(marker))
        scores.set(policyId, Math.max(scores.get(policyId) ?? 0, Math.min(1, Number(value))))
      return rules.map(({ policyId }) => scores.get(policyId) ?? 0)
    },
  }
}
