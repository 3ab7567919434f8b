/**
 * Files that measure their own process, or change it for good. Each of them has a process of its own; the others
 * share one, because loading the modules anew takes longer than the tests.
 */
export const aloneInUnit = [
  'cli/src/audit/streaming.test.ts',
  'service/src/platform/trusted-file.test.ts',
  'service/src/tokens/count.test.ts',
  'service/src/limits/counters/memory-counters.test.ts',
  'service/src/moderation/local/local-scorer.test.ts',
]
export const aloneInIntegration = [
  'service/src/tokens/near-linear.integration.scenario.test.ts',
  'service/src/inference/count/count-in-thread.integration.test.ts',
  'service/src/limits/outage/faults.integration.scenario.test.ts',
  'service/src/credits/holds/rate.integration.scenario.test.ts',
  'service/src/credits/reconcile/many-entries.integration.scenario.test.ts',
  'service/src/credits/reconcile/share-of-check.integration.scenario.test.ts',
  'service/src/access/authenticate-jwt.integration.test.ts',
  'service/src/platform/egress.integration.test.ts',
  'service/src/platform/egress/tenant-limits.integration.test.ts',
]

/**
 * Acceptance tests that compare how fast something is, or that look at everything the machine runs. One runs at a time.
 */
export const aloneInAcceptance = [
  'acceptance/hundred-thousand-policies.test.ts',
  'acceptance/limits-outage.test.ts',
  'acceptance/million-keys.test.ts',
  'acceptance/neighbours.test.ts',
  'acceptance/scored-first-token.test.ts',
  'acceptance/slow-patterns.test.ts',
  'acceptance/stack-failures.test.ts',
  'acceptance/stack.test.ts',
  'acceptance/stream-first-byte.test.ts',
  'acceptance/stream-hang-up.test.ts',
]
