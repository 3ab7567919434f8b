import { parseArgs } from 'node:util'

import { type Stack, startStack } from './start-stack.ts'

const usage = `Usage: ./dev stack [--json] [--processes N]

Starts a complete throwaway Gatehouse with fresh data; Ctrl-C stops it and drops the data.
  --json         print one line of JSON when ready, for scripts
  --processes N  API processes, 1 to 16 (default 1)
`

function readOptions() {
  const { values } = parseArgs({
    options: {
      json: { type: 'boolean' },
      processes: { type: 'string', default: '1' },
      help: { type: 'boolean' },
    },
  })
  const processes = Number(values.processes)
  if (!Number.isInteger(processes) || processes < 1 || processes > 16) {
    throw new Error('--processes takes a whole number from 1 to 16.')
  }
  return { ...values, processes }
}

/** What a person needs to go on: addresses, keys, and calls to copy. */
function panel({ description: stack, folder }: Stack): string {
  const call = `curl -s -H "Authorization: Bearer ${stack.admin_key}"`
  return `
  Gatehouse is running.

  API            ${stack.base_urls.join('\n                 ')}
  Metrics        ${stack.metrics_urls.join('\n                 ')}
  Upstream       ${stack.upstream_url}  (a double)
  Logs           ${folder}

  Organization   ${stack.organization_id}
  Project        ${stack.project_id}
  Admin key      ${stack.admin_key}
  Project key    ${stack.project_key}

  Try it:

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
  const stack = await startStack({ processes: options.processes, hasLimits: true })
  console.log(options.json ? JSON.stringify(stack.description) : panel(stack))
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
