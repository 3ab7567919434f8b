import type { GatewayReport } from '#audit/policy-report.ts'
import type { Metrics } from '#platform/metrics.ts'

import type { Findings } from './findings.ts'
import { findRefuser } from './refusals.ts'

type CountedDecision = {
  decision: GatewayReport['decision']
  /** `enforcing`: the decision was applied. `monitoring`: it was only recorded. */
  mode: 'enforcing' | 'monitoring'
}

/** Adds a checked call to the metrics, when it is over. */
export function countDecision(
  { policyDecisions }: Pick<Metrics, 'policyDecisions'>,
  findings: Findings,
  error: unknown,
) {
  policyDecisions.inc(findDecision(findings, error))
}

function findDecision(findings: Findings, error: unknown): CountedDecision {
  const { configured, matches, replacement } = findings
  const refusedBy = findRefuser(findings, error)
  const wanted = configured?.isSampled ? configured.decide().decision : 'allow'
  if (refusedBy) {
    const isReplacing = wanted === 'rewrite' || wanted === 'summary'
    const isRefused = !refusedBy.isConfiguration || (isReplacing && replacement === null)
    return { decision: isRefused ? 'refuse' : wanted, mode: 'enforcing' }
  }
  if (wanted !== 'allow') return { decision: wanted, mode: 'monitoring' }
  const isObserved = matches.some(({ mode }) => mode === 'monitoring')
  return isObserved
    ? { decision: 'refuse', mode: 'monitoring' }
    : { decision: 'allow', mode: 'enforcing' }
}
