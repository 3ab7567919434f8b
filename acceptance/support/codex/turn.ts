import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { promptFor } from '#support/streams/call.ts'

// One turn of the real Codex, without a terminal and without approval prompts.

const turnMaxMs = 60_000

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

/** A proxy address without a server: only addresses on this machine can be reached. */
const deadProxy = 'http://127.0.0.1:9'

async function runCodex(options: CodexOptions, home: string, work: string): Promise<CodexTurn> {
  const args = [options.program, ...cliArguments, work, promptFor(options.script)]
  const child = spawn(process.execPath, args, {
    cwd: work,
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      CODEX_HOME: home,
      GATEHOUSE_KEY: options.key,
      HTTP_PROXY: deadProxy,
      HTTPS_PROXY: deadProxy,
      NO_PROXY: '127.0.0.1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve).once('error', reject)
  })
  // Not SIGKILL: Codex has a child process, which it stops only when it is terminated cleanly.
  const deadline = setTimeout(() => child.kill('SIGTERM'), turnMaxMs)
  const [output, errorOutput, exitCode] = await Promise.all([
    readText(child.stdout),
    readText(child.stderr),
    ended,
  ])
  clearTimeout(deadline)
  return { exitCode, events: readEvents(output), printed: `${output}\n${errorOutput}` }
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
