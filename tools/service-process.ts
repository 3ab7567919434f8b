import { type ChildProcess, fork } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const sources = fileURLToPath(new URL('../service/src/', import.meta.url))

export type ApiProcess = { baseUrl: string; metricsUrl: string; child: ChildProcess }

/** Starts one process of the service and waits until it says where it listens. */
export async function startProcess(
  entry: string,
  environment: Record<string, string>,
  logFile: string,
): Promise<ApiProcess> {
  const child = fork(join(sources, entry), {
    env: environment,
    execArgv: [],
    // A group of its own: Ctrl-C in a terminal reaches us, and we stop the others in order.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const log = createWriteStream(logFile, { flags: 'a' })
  child.stdout?.pipe(log)
  let complaint = ''
  child.stderr?.on(
    'data',
    (chunk: Buffer) => (complaint = `${complaint}${chunk.toString()}`.slice(-2000)),
  )
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`A process ended with ${code}. ${complaint}`)))
    child.once('message', (message) => {
      const { address = '', operationsAddress = '' } = message as Record<string, string>
      child.removeAllListeners('exit')
      resolve({ baseUrl: address, metricsUrl: `${operationsAddress}/metrics`, child })
    })
  })
}

export async function stopProcess(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM') {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  // Whoever does not stop in time would keep the database from being dropped.
  const force = setTimeout(() => child.kill('SIGKILL'), 30_000)
  await ended
  clearTimeout(force)
}

export async function untilReady({ baseUrl }: ApiProcess) {
  for (const deadline = Date.now() + 15_000; Date.now() < deadline;) {
    const response = await fetch(`${baseUrl}/health/ready`).catch(() => undefined)
    if (response?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`The process at ${baseUrl} did not become ready within 15 seconds.`)
}
