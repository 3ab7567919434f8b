import type { Endpoint } from '@gatehouse/contract/endpoint'

/** Where the rules of an endpoint are written, by its path. The first pattern that matches counts. */
const rules: readonly (readonly [path: RegExp, title: string, place: string])[] = [
  [/policies\/:policy_id\/versions/, 'versions', 'policies.md#versions-and-restore'],
  [/policies\/:policy_id\/rollout/, 'rollout', 'policies.md#rollout'],
  [/policies\/:policy_id\/approvals/, 'approvals', 'two-persons.md#approvals'],
  [/policies\/:policy_id\/replay/, 'replays', 'policies.md#replays'],
  [/policies\/:policy_id\/evaluate/, 'trials', 'policies.md#trials'],
  [/policies\/:policy_id\/examples/, 'examples', 'policies.md#examples'],
  [/policies\/:policy_id\/decisions/, 'decisions', 'policies.md#decisions'],
  [/policies\/:policy_id\/(publish|pause|resume)/, 'states', 'policies.md#states'],
  [/policies\/:policy_id$/, 'policies', 'policies.md#update'],
  [/organization\/policies$/, 'policies', 'policies.md#create'],
  [/exports\/:export_id\/replay/, 'replays', 'export-sinks.md#replays'],
  [/exports\/:export_id\/dead_letters/, 'dead letters', 'export-sinks.md#dead-letters'],
  [/policy-gateway\/exports/, 'sinks', 'export-sinks.md#operations'],
  [/policy-gateway\/guardrails/, 'guardrails', 'policy-gateway.md#guardrails'],
  [/policy-gateway\/proposals/, 'proposals', 'two-persons.md#proposals'],
  [/policy-gateway\/quotas/, 'quotas', 'policy-gateway.md#quotas'],
  [/policy-gateway\/simulate/, 'simulation', 'policy-gateway.md#simulation'],
  [/policy-gateway\/.*(history|restore)/, 'history', 'policy-gateway.md#history'],
  [/policy-gateway\/.*rollout/, 'rollout modes', 'policy-gateway.md#rollout-modes'],
  [/policy-gateway/, 'configuration', 'policy-gateway.md#read-and-save'],
  [/admin_api_keys/, 'administrator keys', 'authentication.md#administrator-keys'],
  [/projects\/.*api_keys/, 'project keys', 'authentication.md#project-api-keys'],
  [/projects\/.*members/, 'members of projects', 'members.md#members-of-projects'],
  [/organization\/projects/, 'projects', 'authentication.md#projects'],
  [/organization\/members/, 'members', 'members.md#members'],
  [/organization\/roles/, 'roles', 'members.md#roles'],
  [/organization\/settings$/, 'settings', 'authentication.md#settings'],
  [/organization\/me$/, 'who you are', 'members.md#who-you-are'],
  [/organization\/limits/, 'reading limits', 'limits.md#reading-limits'],
  [
    /organization\/models/,
    'models for administrators',
    'models-and-tokens.md#models-for-administrators',
  ],
  [/credits\/ledger/, 'ledger', 'credits.md#ledger'],
  [/organization\/usage/, 'usage', 'credits.md#usage-reports'],
  [/organization\/processes/, 'processes', 'policies.md#processes'],
  [/organization\/refusals/, 'refusals', 'traffic.md#refusals'],
  [/organization\/traffic/, 'traffic', 'traffic.md#traffic'],
  [/organization\/credits/, 'balance for administrators', 'credits.md#balance-for-administrators'],
  [/audit_events$/, 'reading events', 'audit-events.md#reading-events'],
  [/audit_events\/histogram$/, 'histogram', 'audit-events.md#histogram'],
  [/audit_(records|checkpoints|events)/, 'the audit log', 'audit-log.md#reading-it'],
  [/gatehouse-audit-keys/, 'keys', 'audit-log.md#keys'],
  [/count_tokens/, 'count tokens', 'models-and-tokens.md#count-tokens'],
  [/^\/v1\/(messages|responses|chat)/, 'inference', 'inference.md'],
  [/^\/v1\/models/, 'list models', 'models-and-tokens.md#list-models'],
  [/^\/v1\/credits/, 'balance', 'credits.md#balance'],
  [/webhooks\/stripe/, 'Stripe webhook', 'payments.md#stripe-webhook'],
  [/^\/(health|openapi|\.well-known|$)/, 'service endpoints', 'conventions.md#service-endpoints'],
]

/** Every path of the API, with its methods, the permissions that they need, and where its rules are written. */
export function toEndpointTable(endpoints: readonly Endpoint[]): string {
  const rows = [...Map.groupBy(endpoints, ({ path }) => path)].map(([path, operations]) => {
    const methods = operations.map(({ method }) => method).join(', ')
    const permissions = new Set(operations.map(describePermission))
    const written = path.replaceAll(/:(\w+)/g, '{$1}')
    return `| \`${methods} ${written}\` | ${[...permissions].join(', ')} | ${findRules(path)} |`
  })
  return ['| Endpoint | Permission | Rules |', '|---|---|---|', ...rows].join('\n')
}

function describePermission({ permission, orProjectRole, orSelf }: Endpoint): string {
  if (permission === 'any') return 'any credential'
  if (permission === null) return 'none'
  if (orSelf) return `\`${permission}\` or the member`
  return orProjectRole ? `\`${permission}\` or \`${orProjectRole}\`` : `\`${permission}\``
}

function findRules(path: string): string {
  const found = rules.find(([pattern]) => pattern.test(path))
  if (!found) throw new Error(`endpoint-table.ts does not say where the rules of ${path} are.`)
  const [, title, place] = found
  return `[${title}](${place})`
}
