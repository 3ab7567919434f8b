import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { promptFor } from '#support/streams/call.ts'

// One turn of the real Claude Code, without a terminal.

const turnMaxMs = 60_000

export type ClaudeCodeOptions = {
  program: string
  baseUrl: string
  key: string
  model: string
  script: Script
  /** Files of the working folder, by their names. */
  files?: Readonly<Record<string, string>>
}

export type ClaudeCodeTurn = {
  exitCode: number | null
  /** What it says at the end: the answer, or the error. */
  result: string
  isError: boolean
  /** Everything it printed, to explain a failure. */
  printed: string
}

/** Runs Claude Code with one prompt, in a temporary home and working folder. */
export async function takeTurn(options: ClaudeCodeOptions): Promise<ClaudeCodeTurn> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-claude-code-'))
  try {
    const [home, work] = [join(folder, 'home'), join(folder, 'work')]
    await Promise.all([mkdir(home), mkdir(work)])
    for (const [name, text] of Object.entries(options.files ?? {})) {
      await writeFile(join(work, name), text)
    }
    return await runClaudeCode(options, home, work)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** A proxy address without a server: only addresses on this machine can be reached. */
const deadProxy = 'http://127.0.0.1:9'

async function runClaudeCode(
  { program, baseUrl, key, model, script }: ClaudeCodeOptions,
  home: string,
  work: string,
): Promise<ClaudeCodeTurn> {
  const args = [program, '--print', '--output-format', 'json', '--model', model, promptFor(script)]
  const child = spawn(process.execPath, args, {
    cwd: work,
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      CLAUDE_CONFIG_DIR: home,
      ANTHROPIC_BASE_URL: baseUrl,
      ANTHROPIC_AUTH_TOKEN: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      HTTP_PROXY: deadProxy,
      HTTPS_PROXY: deadProxy,
      NO_PROXY: '127.0.0.1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve).once('error', reject)
  })
  const deadline = setTimeout(() => child.kill('SIGTERM'), turnMaxMs)
  const [output, errorOutput, exitCode] = await Promise.all([
    readText(child.stdout),
    readText(child.stderr),
    ended,
  ])
  clearTimeout(deadline)
  return { exitCode, ...readResult(output), printed: `${output}\n${errorOutput}` }
}

function readResult(output: string): Pick<ClaudeCodeTurn, 'result' | 'isError'> {
  const line = output.split('\n').find((each) => each.startsWith('{') && each.endsWith('}')) ?? '{}'
  const { result = '', is_error: isError = true } = JSON.parse(line) as {
    result?: string
    is_error?: boolean
  }
  return { result, isError }
}
