import { Counter, type Registry } from 'prom-client'

/** What calls have used and what was decided about them. Labels come from the catalogue and from fixed lists, never from callers. */
export const usageMetrics = (registers: Registry[]) => ({
  tokens: new Counter({
    name: 'gatehouse_tokens_total',
    help: 'Tokens of calls to models, by model and kind: input (neither read from a cache nor written to it), cached_input, cache_write, output.',
    labelNames: ['model', 'kind'],
    registers,
  }),
  costUsd: new Counter({
    name: 'gatehouse_cost_usd_total',
    help: 'What calls to models cost by the prices of the catalogue, in US dollars, whether or not an organization is charged.',
    labelNames: ['model'],
    registers,
  }),
  policyDecisions: new Counter({
    name: 'gatehouse_policy_decisions_total',
    help: 'Calls that policies were asked about, by decision: applied (mode enforcing), or only recorded (mode monitoring).',
    labelNames: ['decision', 'mode'],
    registers,
  }),
})
