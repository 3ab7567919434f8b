import { execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'

import { freePort } from '@gatehouse/tools/free-port'

/** A Redis of the test's own, on another port: one that may be stopped, and started again, empty, on its port. */
export async function startOwnRedis(where: { port?: number } = {}) {
  const port = where.port ?? (await freePort())
  const child = spawn(
    'redis-server',
    [
      ...['--port', String(port)],
      ...['--bind', '127.0.0.1'],
      ...['--save', ''],
      '--appendonly',
      'no',
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`Redis ended with ${code}.`)))
    child.stdout.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('Ready to accept connections')) resolve()
    })
  })
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    /** One command, past the service, as an operator would ask. */
    ask: async (...args: string[]) =>
      (await promisify(execFile)('redis-cli', ['-p', String(port), ...args])).stdout.trim(),
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await ended
    },
  }
}
export type OwnRedis = Awaited<ReturnType<typeof startOwnRedis>>
