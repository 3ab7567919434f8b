import { spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { onTestFinished } from 'vitest'

import { serverUrl } from '#testing/servers.ts'

const main = fileURLToPath(new URL('../../main.ts', import.meta.url))

/** Of the processes that these tests start. */
export const masterKeys = `1:${Buffer.from(Array.from({ length: 32 }, (_, index) => index * 7)).toString('base64')}`

type Settings = Record<string, string>
type LogLine = Record<string, string | undefined>

/** Another user may run neither Node nor the service in a checkout below a directory that is private. */
export function canRunAs(user: number): boolean {
  const read = `fs.accessSync(${JSON.stringify(main)})`
  return spawnSync(process.execPath, ['--eval', read], { uid: user, gid: user }).status === 0
}

/** Starts the service as a process; killed when the test ends. `user`: the one it runs as. */
export function startMain(settings: Settings, user?: number) {
  const child = spawn(process.execPath, [main], {
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: serverUrl,
      MASTER_KEYS: masterKeys,
      HOST: '127.0.0.1',
      PORT: '0',
      OPERATIONS_PORT: '0',
      ROLES: 'api',
      ...settings,
    },
    ...(user !== undefined && { uid: user, gid: user }),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // Without a listener, a process that cannot be started ends the whole test run.
  child.once('error', (error) => (stderr += error.message))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const lines = () =>
    stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as LogLine)
  const find = (code: string) => lines().findLast(({ event, what }) => (what ?? event) === code)
  return {
    child,
    lines,
    outcome: async () => ({ code: await ended, stdout, stderr }),
    /** The last line with this code, as soon as there is one. */
    async line(code: string): Promise<LogLine> {
      await waitUntil(() => find(code) !== undefined || child.exitCode !== null)
      const found = find(code)
      if (!found) throw new Error(`The process ended without a line ${code}: ${stdout}${stderr}`)
      return found
    },
    /** What its operations port answers. */
    async ask(path: string): Promise<{ status: number; text: string }> {
      const address = find('listening')?.['operations_address'] ?? ''
      const response = await fetch(`${address}${path}`)
      return { status: response.status, text: await response.text() }
    },
  }
}

/** Runs the service until it ends by itself. */
export const runMain = (settings: Settings, user?: number) => startMain(settings, user).outcome()
