import type { OrganizationLimits } from '@gatehouse/contract/limits'

import { stackModeration } from './scripted-moderation.ts'
import type { Stack } from './start-stack.ts'

export type PanelFacts = { limits: OrganizationLimits; creditsUsd: string; hasLlama: boolean }

/** Addresses, keys, and calls to copy. */
export function panelOf(stack: Stack, { limits, creditsUsd, hasLlama }: PanelFacts): string {
  const { description, folder, modelsFile } = stack
  const { base_url: url, admin_key: adminKey, project_key: projectKey } = description
  const model = hasLlama ? 'stories' : 'claude-scripted'
  const call = `curl -sN -H "Authorization: Bearer ${projectKey}" -H 'Content-Type: application/json'`
  const administer = `curl -s -H "Authorization: Bearer ${adminKey}"`
  return `
  Gatehouse is running.

  API            ${description.base_urls.join('\n                 ')}
  Metrics        ${description.metrics_urls.join('\n                 ')}
  Upstream       ${description.upstream_url}  (scripted)
  Models         ${modelsFile}
  Moderation     ${stackModeration.MODERATION_FILE}  (scripted)
  Logs           ${folder}

  Organization   ${description.organization_id}
  Tier           ${limits.tier}: ${limitsOfKey(limits)}
  Credits        ${creditsUsd} USD
  Project        ${description.project_id}
  Admin key      ${adminKey}
  Project key    ${projectKey}

  Call a model in the Messages format; /v1/responses and /v1/chat/completions work too:

    ${call} \\
      -d '{"model":"${model}","max_tokens":60,"stream":true,"messages":[{"role":"user","content":"Once upon a time"}]}' \\
      ${url}/v1/messages

  A scripted scorer moderates all texts here: it knows only marks such as [[cat:hate=0.9]]. It blocks this call:

    ${call} \\
      -d '{"model":"${model}","max_tokens":60,"messages":[{"role":"user","content":"Hello [[cat:self-harm=0.9]]"}]}' \\
      ${url}/v1/messages

  A scripted judge decides about rules in plain language: it only looks for what they have in quotation marks. Publish such a
  rule and send a call that it blocks:

    export GATEHOUSE_URL=${url} GATEHOUSE_ADMIN_KEY=${adminKey}
    POLICY=$(./dev gatehouse create-policy --name "Falcon" --rule 'Nobody may mention "Project Falcon".' \\
      --mode enforcing --scope organization | awk '$1 == "id:" { print $2 }')
    ./dev gatehouse publish-policy "$POLICY" --revision 1 --wait applied
    ${call} \\
      -d '{"model":"${model}","max_tokens":60,"messages":[{"role":"user","content":"Tell me about Project Falcon."}]}' \\
      ${url}/v1/messages

  Point an SDK at it:

    export OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=${projectKey}
    export ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=${projectKey}

  Read the balance and the ledger:

    curl -s -H "Authorization: Bearer ${projectKey}" ${url}/v1/credits
    ${administer} '${url}/v1/organization/credits/ledger?order=desc'

  Administer the organization:

    ${administer} ${url}/v1/organization/admin_api_keys

    ${administer} -X POST -H 'Content-Type: application/json' \\
      -d '{"name":"My project"}' ${url}/v1/organization/projects

    curl -s ${url}/openapi.json

    export GATEHOUSE_URL=${url} GATEHOUSE_ADMIN_KEY=${adminKey}
    ./dev gatehouse list-projects

  Export the audit log, once its first checkpoint is signed, and verify it:

    curl -s ${url}/.well-known/gatehouse-audit-keys.json > keys.json
    ./dev gatehouse audit export --out bundle.ndjson && ./dev gatehouse audit verify bundle.ndjson --keys keys.json

  Ctrl-C stops everything and drops the data.
`
}

function limitsOfKey({ each_key: key }: OrganizationLimits): string {
  const { requests_per_minute: requests, concurrent_requests: concurrent } = key
  return `${requests.limit} requests per minute and ${concurrent.limit} at once for each key`
}
