import { type ChildProcess, fork } from 'node:child_process'

/** Starts a file of this repository as a child process and waits for its first message, its address. */
export async function startChild(file: string | URL, environment: Record<string, string> = {}) {
  const child = fork(file, {
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message) => resolve(message as string))
    child.once('exit', (code) => reject(new Error(`A helper process exited with ${code}.`)))
  })
  return { url, child, pid: pidOf(child), stop: () => stopChild(child) }
}

export function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('The process could not be started.')
  return pid
}

export async function stopChild(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const force = setTimeout(() => child.kill('SIGKILL'), 5000)
  await ended
  clearTimeout(force)
}

/** Waits until the process accepts connections at this address. */
export async function untilListening(url: string, child: ChildProcess) {
  for (const deadline = Date.now() + 15_000; Date.now() < deadline;) {
    if (child.exitCode !== null) throw new Error(`The process for ${url} exited at once.`)
    const isListening = await fetch(url).then(
      () => true,
      () => false,
    )
    if (isListening) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`Nothing listened at ${url} within 15 seconds.`)
}
