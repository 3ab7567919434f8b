import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { runAgent } from '#support/run-agent.ts'
import { promptFor } from '#support/streams/call.ts'

// One turn of the real Codex, without a terminal and without approval prompts.

export type CodexOptions = {
  program: string
  baseUrl: string
  key: string
  model: string
  script: Script
  /** Codex offers the model a web search unless it is told otherwise. */
  hasWebSearch?: boolean
}

export type CodexItem = {
  type: string
  text?: string
  aggregated_output?: string
}

type CodexEvent = { type: string; item?: CodexItem; [member: string]: unknown }

export type CodexTurn = {
  exitCode: number | null
  events: CodexEvent[]
  /** Everything it printed, to explain a failure. */
  printed: string
}

/** Runs Codex with one prompt, in a temporary home and working folder. */
export async function takeTurn(options: CodexOptions): Promise<CodexTurn> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-codex-'))
  try {
    const [home, work] = [join(folder, 'home'), join(folder, 'work')]
    await Promise.all([mkdir(home), mkdir(work)])
    await writeFile(join(home, 'config.toml'), configFor(options))
    return await runCodex(options, home, work)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** No approval prompts, no telemetry, and no retries, so that every failure is visible. */
const configFor = ({ baseUrl, model, hasWebSearch = false }: CodexOptions) => `
model = "${model}"
${hasWebSearch ? '' : 'web_search = "disabled"'}
model_provider = "gatehouse"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"

[model_providers.gatehouse]
name = "Gatehouse"
base_url = "${baseUrl}/v1"
wire_api = "responses"
env_key = "GATEHOUSE_KEY"
request_max_retries = 0
stream_max_retries = 0
`

const cliArguments = [
  'exec',
  '--strict-config',
  '--skip-git-repo-check',
  '--ephemeral',
  '--ignore-rules',
  '--color',
  'never',
  '--json',
  '--cd',
]

async function runCodex(options: CodexOptions, home: string, work: string): Promise<CodexTurn> {
  const args = [options.program, ...cliArguments, work, promptFor(options.script)]
  const environment = { CODEX_HOME: home, GATEHOUSE_KEY: options.key }
  const { exitCode, output, printed } = await runAgent({ args, home, work, environment })
  return { exitCode, events: readEvents(output), printed }
}

/** Parses whole lines only: the deadline may have cut off the last one. */
function readEvents(output: string): CodexEvent[] {
  const lines = output.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'))
  return lines.map((line) => JSON.parse(line) as CodexEvent)
}

/** The completed items of one type, in order. */
export const itemsOf = ({ events }: CodexTurn, type: string): CodexItem[] =>
  events.flatMap(({ type: event, item }) =>
    event === 'item.completed' && item?.type === type ? [item] : [],
  )
