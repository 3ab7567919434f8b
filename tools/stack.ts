import { parseArgs } from 'node:util'

import { type Stack, startStack } from './start-stack.ts'

const usage = `Usage: ./dev stack [--json] [--processes N] [--upstream scripted|llama]

Starts a complete throwaway Gatehouse with fresh data; Ctrl-C stops it and drops the data.
  --json         print one line of JSON when ready, for scripts
  --processes N  API processes, 1 to 16 (default 1)
  --upstream U   scripted (default): models that say what a request tells them to;
                 llama: also 'stories', a tiny real model that runs on this machine
`

function readOptions() {
  const { values } = parseArgs({
    options: {
      json: { type: 'boolean' },
      processes: { type: 'string', default: '1' },
      upstream: { type: 'string', default: 'scripted' },
      help: { type: 'boolean' },
    },
  })
  const processes = Number(values.processes)
  if (!Number.isInteger(processes) || processes < 1 || processes > 16) {
    throw new Error('--processes takes a whole number from 1 to 16.')
  }
  if (!['scripted', 'llama'].includes(values.upstream)) {
    throw new Error('--upstream takes scripted or llama.')
  }
  return { ...values, processes, hasLlama: values.upstream === 'llama' }
}

/** What a person needs to go on: addresses, keys, and calls to copy. */
function panel({ description: stack, folder, modelsFile }: Stack, hasLlama: boolean): string {
  const model = hasLlama ? 'stories' : 'claude-scripted'
  const ask = `curl -sN -H "Authorization: Bearer ${stack.project_key}" -H 'Content-Type: application/json'`
  const call = `curl -s -H "Authorization: Bearer ${stack.admin_key}"`
  return `
  Gatehouse is running.

  API            ${stack.base_urls.join('\n                 ')}
  Metrics        ${stack.metrics_urls.join('\n                 ')}
  Upstream       ${stack.upstream_url}  (scripted)
  Models         ${modelsFile}
  Logs           ${folder}

  Organization   ${stack.organization_id}
  Project        ${stack.project_id}
  Admin key      ${stack.admin_key}
  Project key    ${stack.project_key}

  Call a model, in any of the three formats:

    ${ask} \\
      -d '{"model":"${model}","max_tokens":60,"stream":true,"messages":[{"role":"user","content":"Once upon a time"}]}' \\
      ${stack.base_url}/v1/messages

    export OPENAI_BASE_URL=${stack.base_url}/v1 OPENAI_API_KEY=${stack.project_key}
    export ANTHROPIC_BASE_URL=${stack.base_url} ANTHROPIC_API_KEY=${stack.project_key}

  It begins with 1000 USD of credits. What is left of them, and where they went:

    curl -s -H "Authorization: Bearer ${stack.project_key}" ${stack.base_url}/v1/credits
    ${call} '${stack.base_url}/v1/organization/credits/ledger?order=desc'

  Administer it:

    ${call} ${stack.base_url}/v1/organization/admin_api_keys

    ${call} -X POST -H 'Content-Type: application/json' \\
      -d '{"name":"My project"}' ${stack.base_url}/v1/organization/projects

    curl -s ${stack.base_url}/openapi.json

    export GATEHOUSE_URL=${stack.base_url} GATEHOUSE_ADMIN_KEY=${stack.admin_key}
    ./dev gatehouse list-projects

  Ctrl-C stops everything and drops the data.
`
}

async function run() {
  const options = readOptions()
  if (options.help) return process.stdout.write(usage)
  if (!options.json) console.log('Starting a throwaway Gatehouse …')
  // A signal that arrives while it starts must not leave a database behind.
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve())
  })
  const stack = await startStack({
    processes: options.processes,
    hasLlama: options.hasLlama,
    hasLimits: true,
  })
  console.log(options.json ? JSON.stringify(stack.description) : panel(stack, options.hasLlama))
  await stopped
  if (!options.json) console.log('Stopping …')
  await stack.stop()
  return undefined
}

try {
  await run()
} catch (error) {
  console.error(`stack: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
