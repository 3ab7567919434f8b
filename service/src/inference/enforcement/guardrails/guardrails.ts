import type { Check } from '#inference/enforcement/check.ts'

/**
 * Webhooks of the operator and of the organization. They may change the request, so they are asked last: no other check has to be
 * made again. Answers pass them when everything else has let them leave.
 */
export const guardrails: Check = {
  name: 'guardrails',
  afterHold: async (checked, _, request) =>
    (await checked.guardrails?.checkRequest(request)) ?? null,
}
