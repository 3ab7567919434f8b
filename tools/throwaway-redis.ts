import { execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'

import { freePort } from './free-port.ts'

/** A Redis server for one test, which may stop it and start an empty one on the same port, or for one measurement. */
export async function startThrowawayRedis(options: { port?: number } = {}) {
  const port = options.port ?? (await freePort())
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
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
    pid: child.pid ?? 0,
    url: `redis://127.0.0.1:${port}`,
    /** Runs one command as an operator would, bypassing the service. */
    command: async (...args: string[]) =>
      (await promisify(execFile)('redis-cli', ['-p', String(port), ...args])).stdout.trim(),
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await ended
    },
  }
}
export type ThrowawayRedis = Awaited<ReturnType<typeof startThrowawayRedis>>
