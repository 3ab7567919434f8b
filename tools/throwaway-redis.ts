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

const connectMs = 2000
const keysAtOnce = 500

/**
 * Removes all keys of a namespace (`REDIS_NAMESPACE`), and returns how many there were. A server that is gone has none: tests
 * stop theirs.
 */
export async function removeRedisKeys(url: string, namespace: string): Promise<number> {
  if (!/^[\w-]+$/.test(namespace)) throw new Error(`'${namespace}' is no namespace.`)
  // Only now, because it takes long to load.
  const { createClient } = await import('redis')
  const client = createClient({
    url,
    disableOfflineQueue: true,
    socket: { connectTimeout: connectMs, socketTimeout: connectMs, reconnectStrategy: false },
  })
  client.on('error', () => undefined)
  const isConnected = await client.connect().then(
    () => true,
    () => false,
  )
  if (!isConnected) return 0
  let removed = 0
  try {
    for await (const keys of client.scanIterator({ MATCH: `${namespace}:*`, COUNT: keysAtOnce })) {
      if (keys.length > 0) removed += await client.unlink(keys)
    }
    return removed
  } finally {
    client.destroy()
  }
}
