import { expect, test } from 'vitest'

import {
  defaultGatewayConfig,
  effectiveAction,
  findContradiction,
  GatewayConfig,
  GivenGatewayConfig,
} from './config.ts'

const defaults = {
  policy_id: 'policy-gateway',
  name: 'policy-gateway',
  owner: '',
  description: '',
  rules: {
    allowlist: [],
    denylist: [],
    redact: false,
    rewrite_instead_of_refuse: false,
    response_pattern: 'refuse',
    reason_codes: [],
    flagged_categories: [],
  },
  org_controls: {
    project_keys: false,
    user_quotas: false,
    audit_logs: true,
    data_classification: 'internal',
    user_quota: { requests: 0, tokens: 0, window: 'daily' },
    project_quota: { requests: 0, tokens: 0, window: 'monthly' },
  },
  rollout: {
    shadow: { enabled: false, sample_percent: 0, targets: [] },
    canary: { enabled: false, sample_percent: 0, targets: [] },
    rollback_on_spike: false,
  },
  refusal_replacement: { mode: 'refuse', escalation_path: '' },
}

test('without anything given, every path has its default', () => {
  expect(GivenGatewayConfig.parse({})).toEqual(defaults)
  expect(defaultGatewayConfig()).toEqual(defaults)
})

/** The paths of the contract: objects below the second level count as one. */
const paths = Object.entries(defaults).flatMap(([name, part]) =>
  typeof part === 'object' && name !== 'refusal_replacement'
    ? Object.keys(part).map((member) => `${name}.${member}`)
    : [name],
)

test.each(paths)('given alone, %s leaves everything else at its default', (path) => {
  const [name = '', member] = path.split('.')
  const value = (defaults as Record<string, unknown>)[name]
  const given = {
    [name]: member ? { [member]: (value as Record<string, unknown>)[member] } : value,
  }
  expect(GivenGatewayConfig.parse(given)).toEqual(defaults)
})

test('there are 21 paths', () => {
  expect(paths).toHaveLength(21)
})

test('partial objects are completed', () => {
  const config = GivenGatewayConfig.parse({
    policy_id: 'strict',
    org_controls: { user_quota: { requests: 5 } },
    rollout: { canary: { enabled: true, sample_percent: 12.5 } },
  })
  expect(config).toMatchObject({
    policy_id: 'strict',
    name: 'strict',
    org_controls: { user_quota: { requests: 5, tokens: 0, window: 'daily' } },
    rollout: { canary: { enabled: true, sample_percent: 12.5, targets: [] } },
  })
})

test.each([
  [{ rulez: {} }, [], 'rulez'],
  [{ rules: { denylst: [] } }, ['rules'], 'denylst'],
  [{ org_controls: { quota: {} } }, ['org_controls'], 'quota'],
  [{ org_controls: { user_quota: { request: 1 } } }, ['org_controls', 'user_quota'], 'request'],
  [{ rollout: { cannary: {} } }, ['rollout'], 'cannary'],
  [{ rollout: { canary: { percent: 1 } } }, ['rollout', 'canary'], 'percent'],
  [{ refusal_replacement: { path: '' } }, ['refusal_replacement'], 'path'],
])('%j has an unknown member', (given, path, name) => {
  const issues = GivenGatewayConfig.safeParse(given).error?.issues
  expect(issues).toMatchObject([{ code: 'unrecognized_keys', path, keys: [name] }])
})

test.each([
  { policy_id: '' },
  { policy_id: 'Upper' },
  { policy_id: 'a'.repeat(101) },
  { policy_id: null },
  { name: '' },
  { rules: null },
  { rules: { allowlist: [''] } },
  { rules: { allowlist: [' \u200b'] } },
  { rules: { denylist: ['x'.repeat(201)] } },
  { rules: { denylist: Array.from({ length: 1001 }, String) } },
  { rules: { response_pattern: 'allow' } },
  { rules: { reason_codes: ['lower'] } },
  { rules: { reason_codes: [`A${'A'.repeat(64)}`] } },
  { rules: { flagged_categories: ['Hate'] } },
  { rules: { flagged_categories: ['a/b/c'] } },
  { rules: { assistant_history: 'request' } },
  { rules: { unscored_parts: 'drop' } },
  { rules: { redact_restore: 'yes' } },
  { rules: { contact: '' } },
  { rules: { contact: 'x'.repeat(201) } },
  { org_controls: { data_classification: '' } },
  { org_controls: { data_classification: 'x'.repeat(65) } },
  { org_controls: { user_quota: { requests: -1 } } },
  { org_controls: { user_quota: { requests: 1.5 } } },
  { org_controls: { user_quota: { tokens: 2_147_483_648 } } },
  { org_controls: { user_quota: { window: 'hourly' } } },
  { rollout: { canary: { sample_percent: 100.1 } } },
  { rollout: { shadow: { sample_percent: -1 } } },
  { rollout: { rollback_threshold: 0 } },
  { rollout: { rollback_decisions: [] } },
  { rollout: { rollback_decisions: ['allow'] } },
  { refusal_replacement: { mode: 'ignore' } },
  { refusal_replacement: { escalation_path: 'somebody' } },
  { refusal_replacement: { escalation_path: 'http://example.com' } },
])('%j is refused', (given) => {
  expect(GivenGatewayConfig.safeParse(given).success).toBe(false)
})

const rollback = {
  rollback_threshold: 0.5,
  rollback_min_requests: 1,
  rollback_window_minutes: 1,
  rollback_cooldown_minutes: 1,
  rollback_decisions: ['refuse' as const],
}

test('a budget is shown where it was given, and complete', () => {
  const read = (monthly_budget: object) =>
    GivenGatewayConfig.safeParse({ org_controls: { monthly_budget } }).data?.org_controls
      .monthly_budget
  expect(read({ credits: 5 })).toEqual({ credits: 5, alert_percents: [80, 100], hard_stop: true })
  const whole = { credits: 0, alert_percents: [], hard_stop: false }
  expect(read(whole)).toEqual(whole)
  const wrong = [
    {},
    { credits: -1 },
    { credits: 1, alert_percents: [0] },
    { credits: 1, stop: true },
  ]
  expect(wrong.map(read)).toEqual(wrong.map(() => undefined))
})

test('the members of a rollback are kept where they are given', () => {
  expect(GivenGatewayConfig.parse({ rollout: rollback }).rollout).toMatchObject(rollback)
})

const judging = {
  assistant_history: 'both',
  unscored_parts: 'refuse',
  redact_restore: true,
  contact: 'Ask a@b.co.',
}

test('the optional members of the rules are kept where they are given', () => {
  expect(GivenGatewayConfig.parse({ rules: judging }).rules).toEqual({
    ...defaults.rules,
    ...judging,
  })
})

test('a configuration that is read and sent back means the same, in the same order', () => {
  const given = [
    {},
    { rules: { response_pattern: 'escalate' }, refusal_replacement: { escalation_path: 'a@b.co' } },
    { rules: { response_pattern: 'summary', rewrite_instead_of_refuse: true } },
    { rules: { rewrite_instead_of_refuse: true } },
    { rules: { ...judging, denylist: ['bomb'] } },
    { rollout: rollback, name: 'Name', org_controls: { data_classification: 'pii' } },
  ]
  for (const each of given) {
    const config = GivenGatewayConfig.parse(each)
    expect(JSON.stringify(GivenGatewayConfig.parse(GatewayConfig.parse(config)))).toBe(
      JSON.stringify(config),
    )
  }
})

test.each([
  [{ rules: { response_pattern: 'summary' } }, 'summary'],
  [{ rules: { response_pattern: 'summary' }, refusal_replacement: { mode: 'refuse' } }, 'refuse'],
  [{ rules: { rewrite_instead_of_refuse: true } }, 'rewrite'],
  [
    { rules: { rewrite_instead_of_refuse: true }, refusal_replacement: { mode: 'summary' } },
    'summary',
  ],
])('the action of %j is %s', (given, action) => {
  expect(effectiveAction(GivenGatewayConfig.parse(given))).toBe(action)
})

test.each([
  [{}, true],
  [{ refusal_replacement: { mode: 'escalate' } }, false],
  [{ rules: { response_pattern: 'escalate' } }, false],
  [{ rules: { response_pattern: 'escalate' }, refusal_replacement: { mode: 'refuse' } }, true],
  [{ refusal_replacement: { mode: 'escalate', escalation_path: 'help@example.com' } }, true],
  [{ refusal_replacement: { mode: 'escalate', escalation_path: 'https://example.com/x' } }, true],
])('%j is consistent: %s', (given, isConsistent) => {
  expect(findContradiction(GivenGatewayConfig.parse(given)) === null).toBe(isConsistent)
})
