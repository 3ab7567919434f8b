import type { GuardrailReport } from '#audit/policy-report.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'

type Reported = Pick<GuardrailReport, 'direction' | 'action' | 'code'> & {
  readonly tookMs: number
}

/** Of several decisions about one text the event has the one that mattered most. */
const weights = { allow: 0, rewrite: 1, failed: 2, block: 3 } as const

/**
 * Adds what a guardrail has decided to the report of a call: one entry for its request and one for its answer, with the longest time
 * that it took for a question.
 */
export function reportGuardrail(
  reports: GuardrailReport[],
  { id, name, mode }: Guardrail,
  { direction, action, code, tookMs }: Reported,
) {
  const place = reports.findIndex(
    (each) => each.guardrail_id === id && each.name === name && each.direction === direction,
  )
  const known = reports[place]
  const took_ms = Math.max(Math.round(tookMs), known?.took_ms ?? 0)
  if (!known) reports.push({ guardrail_id: id, name, mode, direction, action, code, took_ms })
  else if (weights[action] > weights[known.action])
    reports[place] = { ...known, action, code, took_ms }
  else reports[place] = { ...known, took_ms }
}
