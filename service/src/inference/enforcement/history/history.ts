import type { Check } from '#inference/enforcement/check.ts'

/** Earlier answers in the request. Each gets the verdict that it would get as an answer. */
export const history: Check = {
  name: 'history',
  beforeHold: async ({ history: checked }) => checked?.beforeHold() ?? null,
  afterHold: async ({ history: checked }, sent) => checked?.afterHold(sent.history) ?? null,
}
