import { defaultGatewayConfig } from '../policy-gateway/config.ts'
import * as contract from '../policy-gateway/gateway.ts'
import type { listGatewayQuotas, QuotaItem } from '../policy-gateway/quotas.ts'
import { type ExampleOf, ids } from './example.ts'

const config = defaultGatewayConfig()
const given = { rules: { flagged_categories: ['hate'], rewrite_instead_of_refuse: true } }
const saved: contract.SavedGatewayState = {
  config: { ...config, rules: { ...config.rules, ...given.rules } },
  revision: 1,
  managed_by: null,
  created_at: '2026-11-02T09:00:00Z',
  updated_at: '2026-11-02T09:00:00Z',
  warnings: [],
}

const categories = ['hate/threatening', 'violence']
const simulation: contract.Simulation = {
  decision: 'rewrite',
  reason_code: 'REWRITE',
  triggered_categories: ['hate/threatening'],
  rollout_mode: 'enforced',
  policy_id: 'policy-gateway',
}

const entry = { object: 'policy_gateway.history_entry' as const, actor: ids.adminKey }
const history: contract.HistoryEntry[] = [
  {
    ...entry,
    id: ids.simulation,
    created_at: '2026-11-02T09:05:00Z',
    kind: 'simulation',
    categories,
    ...simulation,
  },
  {
    ...entry,
    id: ids.revision,
    created_at: '2026-11-02T09:00:00Z',
    kind: 'revision',
    revision: 1,
    config: saved.config,
  },
]

type DecisionShare = contract.GatewayArmReport['decisions'][number]
const noDecisions = contract.gatewayDecisions.map((decision): DecisionShare => {
  return { decision, requests: 0, share: null, share_low: 0, share_high: 1 }
})
const canaryDecisions = noDecisions.map(({ decision }): DecisionShare => {
  if (decision === 'allow')
    return { decision, requests: 990, share: 0.99, share_low: 0.9817, share_high: 0.9946 }
  if (decision === 'rewrite')
    return { decision, requests: 10, share: 0.01, share_low: 0.0054, share_high: 0.0183 }
  return { decision, requests: 0, share: 0, share_low: 0, share_high: 0.0038 }
})
const month = { window_start: '2026-11-01T00:00:00Z', window_end: '2026-12-01T00:00:00Z' }
const quotas: QuotaItem[] = [
  {
    id: `budget:project:${ids.project}`,
    object: 'policy_gateway.quota',
    kind: 'budget',
    scope: 'project',
    subject: ids.project,
    window: 'monthly',
    ...month,
    credits: { used: 1_250_000, limit: 20_000_000 },
    hard_stop: true,
  },
  {
    id: 'quota:user:ann',
    object: 'policy_gateway.quota',
    kind: 'quota',
    scope: 'user',
    subject: 'ann',
    window: 'monthly',
    ...month,
    requests: { used: 87, limit: 1000 },
    tokens: { used: 91_250, limit: null },
  },
]

export const gatewayExamples = {
  readGatewayConfig: {
    answer: { config, revision: 0, managed_by: null, created_at: null, updated_at: null },
  } satisfies ExampleOf<typeof contract.readGatewayConfig>,
  saveGatewayConfig: { body: { config: given }, answer: saved } satisfies ExampleOf<
    typeof contract.saveGatewayConfig
  >,
  simulateGateway: { body: { config: given, categories }, answer: simulation } satisfies ExampleOf<
    typeof contract.simulateGateway
  >,
  listGatewayHistory: {
    answer: {
      object: 'list',
      data: history,
      has_more: false,
      first_id: ids.simulation,
      last_id: ids.revision,
    },
  } satisfies ExampleOf<typeof contract.listGatewayHistory>,
  restoreGatewayRevision: {
    params: { history_id: ids.revision },
    answer: { ...saved, revision: 3, updated_at: '2026-11-02T09:10:00Z' },
  } satisfies ExampleOf<typeof contract.restoreGatewayRevision>,
  readGatewayRollout: {
    answer: {
      object: 'policy_gateway.rollout',
      revision: 1,
      policy_epoch: 13,
      is_applied: true,
      processes: { live: 3, applied: 3, pending: 0, failed: 0, silent: 0 },
      revisions: [{ revision: 1, processes: 3 }],
      rolled_back_until: null,
      counted_since: '2026-11-01T09:10:00Z',
      arms: [
        { arm: 'canary', requests: 1000, decisions: canaryDecisions },
        { arm: 'shadow', requests: 0, decisions: noDecisions },
        { arm: 'enforced', requests: 0, decisions: noDecisions },
      ],
    },
  } satisfies ExampleOf<typeof contract.readGatewayRollout>,
  listGatewayQuotas: {
    query: { limit: '20' },
    answer: {
      object: 'list',
      data: quotas,
      has_more: false,
      first_id: `budget:project:${ids.project}`,
      last_id: 'quota:user:ann',
    },
  } satisfies ExampleOf<typeof listGatewayQuotas>,
}
