import { spawn } from 'node:child_process'
import { text as readText } from 'node:stream/consumers'

const turnMaxMs = 60_000

/** A proxy address without a server: only addresses on this machine can be reached. */
const deadProxy = 'http://127.0.0.1:9'

/** How a coding agent is started: with what arguments, in which home and working folder. */
type Start = { args: string[]; home: string; work: string; environment: Record<string, string> }

/** Runs a coding agent, a Node program, until it ends by itself or has taken too long. */
export async function runAgent({ args, home, work, environment }: Start) {
  const child = spawn(process.execPath, args, {
    cwd: work,
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      ...environment,
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
  return { exitCode, output, printed: `${output}\n${errorOutput}` }
}
