import type * as contract from '../credits.ts'
import type { OrganizationLimits, readLimits } from '../limits.ts'
import type { readOrganizationCredits } from '../organization-credits.ts'
import type { readProcesses } from '../organization/processes.ts'
import type { readRefusals, readTraffic } from '../organization/traffic.ts'
import { type ExampleOf, ids, morning } from './example.ts'

const balance: contract.CreditBalance = {
  data: { total_credits: 50, total_usage: 12.345678, remaining_credits: 37_654_322 },
}

/** 1200 input tokens at 3 and 350 output tokens at 15 US dollars per million. */
const entry: contract.LedgerEntry = {
  id: `usage:${ids.request}`,
  object: 'organization.credits.ledger_entry',
  kind: 'usage',
  amount: 8850,
  debit: 'wallet',
  credit: 'revenue',
  request_id: ids.request,
  project_id: ids.project,
  key_id: ids.projectKey,
  model: 'example-large',
  input_tokens: 1200,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
  output_tokens: 350,
  web_searches: 0,
  usage_source: 'upstream',
  price_version: '9f2c61d07a34',
  prices: {
    input: '3',
    cached_input: '0.3',
    cache_write: '3.75',
    cache_write_1h: null,
    output: '15',
    web_search: null,
  },
  created_at: morning,
}

const usage: contract.UsageItem = {
  id: '2026-11-02',
  object: 'organization.credits.usage',
  day: '2026-11-02',
  label: null,
  project_id: null,
  key_id: null,
  model: null,
  requests: 1,
  input_tokens: 1200,
  output_tokens: 350,
  credits: 8850,
  cost_usd: 0.00885,
}

const limit = (most: number | null) => ({ limit: most, used: 0, source: 'tier' as const })
const unused = (requests: number, tokens: number, concurrent: number) => ({
  requests_per_minute: limit(requests),
  requests_per_day: limit(10_000),
  tokens_per_minute: limit(tokens),
  tokens_per_day: limit(null),
  concurrent_requests: limit(concurrent),
})

const none = { limit: null, used: 0 }
const limits: OrganizationLimits = {
  object: 'organization.limits',
  tier: 'free',
  plan: 'free',
  lifetime_paid_usd: 0,
  is_exact: true,
  organization: {
    ...unused(120, 2_000_000, 8),
    requests_per_day: limit(20_000),
    tokens_per_day: limit(1_000_000_000),
  },
  each_project: { ...unused(90, 1_500_000, 6), requests_per_day: limit(15_000) },
  each_key: unused(60, 1_000_000, 4),
  projects: [],
  keys: [],
  administration: {
    requests_per_minute: { limit: 600, used: 1 },
    requests_per_day: none,
    tokens_per_minute: none,
    tokens_per_day: none,
    concurrent_requests: { limit: 20, used: 1 },
  },
}

const page = { object: 'list', has_more: false } as const

export const creditExamples = {
  readCredits: { answer: balance } satisfies ExampleOf<typeof contract.readCredits>,
  readOrganizationCredits: {
    answer: balance,
  } satisfies ExampleOf<typeof readOrganizationCredits>,
  listLedgerEntries: {
    query: { kind: 'usage', from: '2026-11-01T00:00:00Z', limit: '20' },
    answer: { ...page, data: [entry], first_id: entry.id, last_id: entry.id },
  } satisfies ExampleOf<typeof contract.listLedgerEntries>,
  readUsage: {
    query: { group_by: 'day', limit: '31' },
    answer: { ...page, data: [usage], first_id: usage.id, last_id: usage.id },
  } satisfies ExampleOf<typeof contract.readUsage>,
  readLimits: { answer: limits } satisfies ExampleOf<typeof readLimits>,
}

const trafficSums = {
  group: ids.project,
  is_other: false,
  calls: 3120,
  input_tokens: 3_744_000,
  cached_input_tokens: 0,
  output_tokens: 1_092_000,
  credits: 27_612_000,
  latency: { count: 3120, p50_ms: 2435, p95_ms: 8192, p99_ms: 13_777 },
  first_token: { count: 2900, p50_ms: 431, p95_ms: 1024, p99_ms: 1722 },
}

export const trafficExamples = {
  readProcesses: {
    answer: {
      object: 'organization.processes',
      total: 1,
      data: [
        {
          id: '5f0c9a1e',
          release: '0.1.0',
          started_at: morning,
          last_seen_at: null,
          is_ready: true,
          is_counting_locally: false,
          policy_epoch: 12,
          is_failed: false,
        },
      ],
    },
  } satisfies ExampleOf<typeof readProcesses>,
  readTraffic: {
    query: { span: 'hour', group_by: 'project', from: '2026-11-02T09:00:00Z' },
    answer: {
      object: 'organization.traffic',
      span: 'hour',
      from: morning,
      to: morning + 3600,
      data: [{ start: morning, ...trafficSums }],
      total: [trafficSums],
    },
  } satisfies ExampleOf<typeof readTraffic>,
  readRefusals: {
    query: { from: '2026-11-02T09:00:00Z' },
    answer: {
      object: 'organization.refusals',
      from: morning,
      to: morning + 3600,
      total: 214,
      data: [
        {
          project_id: ids.project,
          key_id: ids.projectKey,
          is_other: false,
          scope: 'key',
          metric: 'requests_per_minute',
          count: 214,
          last_at: morning + 1800,
        },
      ],
    },
  } satisfies ExampleOf<typeof readRefusals>,
}
