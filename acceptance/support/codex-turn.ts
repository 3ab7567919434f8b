import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { promptFor } from './stream-call.ts'

// One turn of the real Codex, without a terminal and without anybody to ask.

const turnMaxMs = 60_000

export type CodexWish = {
  program: string
  baseUrl: string
  key: string
  model: string
  script: Script
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
  /** Everything it has printed, for whoever wants to know why it failed. */
  printed: string
}

/** Has Codex answer one prompt, in a home and a working folder of its own. */
export async function takeTurn(wish: CodexWish): Promise<CodexTurn> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-codex-'))
  try {
    const [home, work] = [join(folder, 'home'), join(folder, 'work')]
    await Promise.all([mkdir(home), mkdir(work)])
    await writeFile(join(home, 'config.toml'), configFor(wish))
    return await runCodex(wish, home, work)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Nothing is asked, nothing is reported to anybody, and what fails is shown instead of repeated. */
const configFor = ({ baseUrl, model }: CodexWish) => `
model = "${model}"
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

const options = [
  ...['exec', '--strict-config', '--skip-git-repo-check', '--ephemeral', '--ignore-rules'],
  ...['--color', 'never', '--json', '--cd'],
]

/** A proxy that nobody serves: only what runs on this machine can be reached. */
const nowhere = 'http://127.0.0.1:9'

async function runCodex(wish: CodexWish, home: string, work: string): Promise<CodexTurn> {
  const child = spawn(process.execPath, [wish.program, ...options, work, promptFor(wish.script)], {
    cwd: work,
    env: {
      ...{ PATH: process.env['PATH'], HOME: home, CODEX_HOME: home, GATEHOUSE_KEY: wish.key },
      ...{ HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, NO_PROXY: '127.0.0.1' },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve).once('error', reject)
  })
  // Not by force: the program has started another one, which it ends only when it is asked to.
  const deadline = setTimeout(() => child.kill('SIGTERM'), turnMaxMs)
  const [output, complaints, exitCode] = await Promise.all([
    readText(child.stdout),
    readText(child.stderr),
    ended,
  ])
  clearTimeout(deadline)
  return { exitCode, events: readEvents(output), printed: `${output}\n${complaints}` }
}

/** Whole lines only: a deadline may cut the last one. */
function readEvents(output: string): CodexEvent[] {
  const lines = output.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'))
  return lines.map((line) => JSON.parse(line) as CodexEvent)
}

/** The finished items of one kind, in their order. */
export const itemsOf = ({ events }: CodexTurn, type: string): CodexItem[] =>
  events.flatMap(({ type: event, item }) =>
    event === 'item.completed' && item?.type === type ? [item] : [],
  )
