import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { stopProcess, untilStarted } from '../service-process.ts'

const entry = fileURLToPath(new URL('main.ts', import.meta.url))
const besideRepository = new URL('../../../shared/models/stories260K.gguf', import.meta.url)

/** Where the model file is expected, whether or not it exists. */
function modelPath(): string {
  return process.env['LLAMA_MODEL_PATH'] || fileURLToPath(besideRepository)
}

/** Why the model cannot run on this machine; undefined if it can. */
export function whyNoLlama(path = modelPath()): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return `The engine of the llama upstream is installed for Linux on x64 only, not for ${process.platform} on ${process.arch}.`
  }
  if (existsSync(path)) return undefined
  return `The model file ${path} does not exist. Set LLAMA_MODEL_PATH to a small GGUF model, for example stories260K.gguf.`
}

type LlamaOptions = { modelPath?: string; signal?: AbortSignal | undefined }

/** Starts the program that serves the test model, as a process of its own. */
export async function startLlamaUpstream(options: LlamaOptions = {}) {
  const path = options.modelPath ?? modelPath()
  const reason = whyNoLlama(path)
  if (reason !== undefined) throw new Error(reason)
  const child = fork(entry, {
    env: { PATH: process.env['PATH'], LLAMA_MODEL_PATH: path },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const name = `The llama upstream with the model ${path}`
  const url = (await untilStarted(child, { name, signal: options.signal })) as string
  // SIGKILL: it has nothing to save, and native code in the middle of a token does not handle signals.
  return { url, stop: () => stopProcess(child, 'SIGKILL') }
}
