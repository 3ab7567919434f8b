import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { runAgent } from '#support/run-agent.ts'
import { promptFor } from '#support/streams/call.ts'

// One turn of the real Claude Code, without a terminal.

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

async function runClaudeCode(
  { program, baseUrl, key, model, script }: ClaudeCodeOptions,
  home: string,
  work: string,
): Promise<ClaudeCodeTurn> {
  const args = [program, '--print', '--output-format', 'json', '--model', model, promptFor(script)]
  const { exitCode, output, printed } = await runAgent({
    args,
    home,
    work,
    environment: {
      CLAUDE_CONFIG_DIR: home,
      ANTHROPIC_BASE_URL: baseUrl,
      ANTHROPIC_AUTH_TOKEN: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
  })
  return { exitCode, ...readResult(output), printed }
}

function readResult(output: string): Pick<ClaudeCodeTurn, 'result' | 'isError'> {
  const line = output.split('\n').find((each) => each.startsWith('{') && each.endsWith('}')) ?? '{}'
  const { result = '', is_error: isError = true } = JSON.parse(line) as {
    result?: string
    is_error?: boolean
  }
  return { result, isError }
}
