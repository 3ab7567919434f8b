import { fork, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const entry = fileURLToPath(new URL('main.ts', import.meta.url))
const besideRepository = new URL('../../../shared/models/stories260K.gguf', import.meta.url)

/** The file of the test model, or undefined where there is none. */
export function modelPath(): string | undefined {
  const path = process.env['LLAMA_MODEL_PATH'] ?? fileURLToPath(besideRepository)
  return existsSync(path) ? path : undefined
}

/** Why the model cannot run here, for a test that is skipped then. */
export function whyNoLlama(): string | undefined {
  if (modelPath() === undefined) return 'There is no model file; LLAMA_MODEL_PATH may name one.'
  if (process.platform === 'linux' && process.arch === 'x64') return undefined
  return 'The engine is installed for Linux on x64 only.'
}

/** Starts the program that serves the test model, as a process of its own. */
export async function startLlamaUpstream(options: { modelPath?: string } = {}) {
  const path = options.modelPath ?? modelPath()
  if (path === undefined || !existsSync(path)) {
    throw new Error(`There is no model file${path === undefined ? '' : ` at ${path}`}.`)
  }
  const child = fork(entry, {
    env: { PATH: process.env['PATH'], LLAMA_MODEL_PATH: path },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const url = await addressOf(child)
  return { url, stop: () => stop(child) }
}

function addressOf(child: ChildProcess): Promise<string> {
  let complaint = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    complaint = `${complaint}${chunk.toString()}`.slice(-2000)
  })
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`The model ended with ${code}. ${complaint}`)))
    child.once('message', (url) => resolve(url as string))
  })
}

async function stop(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  // It has nothing to save, and native code in the middle of a token would not listen.
  child.kill('SIGKILL')
  await ended
}
