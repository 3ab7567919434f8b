import { type ChildProcess, fork } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import { compileCache } from './compile-cache.ts'
import { programFile } from './program.ts'

export type ApiProcess = { baseUrl: string; metricsUrl: string; child: ChildProcess }

export type ServiceProcess = {
  /** The file to start, instead of the command `gatehouse`. */
  file?: string | undefined
  environment: Record<string, string>
  logFile: string
  signal?: AbortSignal | undefined
}

/**
 * As the command sets it for itself, which it cannot where its parent has a channel to it; and with the lines of our sources
 * in what a process says of its errors.
 */
function execArgvFor({ NODE_OPTIONS = '' }: Record<string, string>): string[] {
  const semiSpace = '--max-semi-space-size'
  const limits = NODE_OPTIONS.includes(semiSpace) ? [] : [`${semiSpace}=32`]
  // Maps take memory and time when an error is made, which a measurement must not have.
  const maps = process.env['VITEST'] === undefined ? [] : ['--enable-source-maps']
  return [...limits, ...maps]
}

/** Starts one process of the service and waits until it reports where it listens. */
export async function startProcess(options: ServiceProcess): Promise<ApiProcess> {
  const { file = programFile('gatehouse'), environment, logFile, signal } = options
  const child = fork(file, ['serve'], {
    env: { ...compileCache(), ...environment },
    execArgv: execArgvFor(environment),
    // A process group of its own: Ctrl-C in a terminal reaches the parent only, which stops the others in order.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  child.stdout?.pipe(createWriteStream(logFile, { flags: 'a' }))
  const name = `The ${environment['ROLES']} process`
  const { address = '', operationsAddress = '' } = (await untilStarted(child, {
    name,
    signal,
  })) as Record<string, string>
  return { baseUrl: address, metricsUrl: `${operationsAddress}/metrics`, child }
}

type Starting = { name: string; timeoutMs?: number; signal?: AbortSignal | undefined }

/**
 * Waits for the first message of a forked process, which reports that it is up. A process that ends before,
 * sends nothing, or is still starting when the signal aborts is killed; the error says which it was.
 */
export async function untilStarted(child: ChildProcess, options: Starting): Promise<unknown> {
  const { name, timeoutMs = 60_000, signal } = options
  const stderr = collectStderr(child)
  const timeout = AbortSignal.timeout(timeoutMs)
  const tooSlow = () => new Error(`${name} did not start within ${timeoutMs / 1000} seconds.`)
  try {
    return await new Promise((resolve, reject) => {
      child.once('message', resolve)
      child.once('error', reject)
      // Not 'exit': the reason may still be in the pipe then.
      child.once('close', () => reject(endedEarly(name, child, stderr())))
      timeout.addEventListener('abort', () => reject(tooSlow()))
      signal?.addEventListener('abort', () => reject(signal.reason))
      signal?.throwIfAborted()
    })
  } catch (error) {
    await stopProcess(child, 'SIGKILL')
    throw error
  }
}

function collectStderr(child: ChildProcess): () => string {
  let text = ''
  child.stderr?.on('data', (chunk: Buffer) => (text = `${text}${chunk.toString()}`.slice(-2000)))
  return () => text.trim()
}

function endedEarly(name: string, child: ChildProcess, stderr = ''): Error {
  const how = child.signalCode ? `by ${child.signalCode}` : `with exit code ${child.exitCode}`
  return new Error(`${name} ended ${how}${stderr ? `: ${stderr}` : '.'}`)
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

export async function stopProcess(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM') {
  if (hasEnded(child)) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  // A process that does not stop in time would keep the database from being dropped.
  const force = setTimeout(() => child.kill('SIGKILL'), 30_000)
  await ended
  clearTimeout(force)
}

const readyMaxMs = 15_000

export async function untilReady({ baseUrl, metricsUrl, child }: ApiProcess, signal?: AbortSignal) {
  for (const deadline = Date.now() + readyMaxMs; Date.now() < deadline;) {
    signal?.throwIfAborted()
    if (hasEnded(child)) throw endedEarly(`The process at ${baseUrl}`, child)
    const response = await fetchSoon(`${baseUrl}/health/ready`).catch(() => undefined)
    if (response?.ok) return
    await sleep(25)
  }
  const why = await fetchSoon(new URL('/health/ready', metricsUrl)).then(
    (response) => response.text(),
    () => 'no answer',
  )
  throw new Error(
    `The process at ${baseUrl} did not become ready within ${readyMaxMs / 1000} seconds: ${why}`,
  )
}

const fetchSoon = (url: string | URL) => fetch(url, { signal: AbortSignal.timeout(2000) })
