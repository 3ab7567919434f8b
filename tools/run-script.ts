import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import { compileCache } from './compile-cache.ts'
import { programFile } from './program.ts'
import { repositoryRoot } from './source-files.ts'

type ScriptOptions = {
  environment: NodeJS.ProcessEnv
  signal?: AbortSignal | undefined
  timeoutMs?: number
}

/** Runs a script of this repository and returns its output. If it fails, the message is its error output. */
export async function runScript(args: readonly string[], options: ScriptOptions): Promise<string> {
  const { environment, signal, timeoutMs = 120_000 } = options
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [...args], {
      cwd: repositoryRoot,
      env: { ...compileCache(), ...environment },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: 16 * 1024 * 1024,
      ...(signal && { signal }),
    })
    return stdout
  } catch (error) {
    signal?.throwIfAborted()
    const { stderr = '', message } = error as Error & { stderr?: string }
    throw new Error(stderr.trim() || message, { cause: error })
  }
}

/** Runs a command of `gatehouse` and returns its output. */
export const runGatehouse = (args: readonly string[], options: ScriptOptions) =>
  runScript([programFile('gatehouse'), ...args], options)
