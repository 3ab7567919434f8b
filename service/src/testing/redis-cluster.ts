import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { freePort } from '@gatehouse/tools/free-port'
import { afterAll, beforeAll } from 'vitest'

import { connectRedis, type Redis } from '#platform/redis.ts'

// Redis servers of a single test, for tests that would disturb others and for tests of a cluster.

const slots = 16_384
const nodesOfCluster = 3

/** A connection with a long deadline, which ignores the errors that tests cause on purpose. */
export const connectPatiently = (url: string, isCluster = false): Redis =>
  connectRedis({
    url,
    isCluster,
    deadlineMs: 5000,
    onProblem: () => undefined,
    onReady: () => undefined,
  })

/** Polls until the condition holds; the first connection takes some time. */
export async function until(holds: () => Promise<boolean>, timeoutMs = 15_000) {
  const endMs = Date.now() + timeoutMs
  while (!(await holds().catch(() => false))) {
    if (Date.now() > endMs)
      throw new Error(`still false after ${timeoutMs} ms: ${holds.toString()}`)
    await sleep(20)
  }
}

/** Starts an empty redis-server in a directory that is removed afterwards. */
export async function startRedis(args: readonly string[] = []) {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-redis-'))
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  let child: ChildProcess | undefined
  const kill = () => void child?.kill('SIGKILL')
  process.once('exit', kill)

  async function start() {
    const listen = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory]
    child = spawn('redis-server', [...listen, '--save', '', ...args], { stdio: 'ignore' })
    const redis = connectPatiently(url)
    await until(async () => Boolean(await redis.send('', ['PING'])))
    redis.close()
  }
  async function stop() {
    const exited = child && once(child, 'exit')
    kill()
    await exited
  }

  await start()
  return {
    url,
    port,
    /** Restarts the server without its data. */
    restart: async () => {
      await stop()
      await start()
    },
    [Symbol.asyncDispose]: async () => {
      process.off('exit', kill)
      await stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
export type RedisServer = Awaited<ReturnType<typeof startRedis>>

/** A server for all tests of a file, and a connection to it. */
export function useRedis(): () => Redis {
  let server: RedisServer | undefined
  let redis: Redis | undefined
  const connected = (): Redis => {
    if (!redis) throw new Error('Redis is not running yet.')
    return redis
  }
  beforeAll(async () => {
    server = await startRedis()
    redis = connectPatiently(server.url)
    await until(async () => Boolean(await connected().send('', ['PING'])))
  })
  afterAll(async () => {
    redis?.close()
    await server?.[Symbol.asyncDispose]()
  })
  return connected
}

/** Three primaries, each with a third of the slots. */
export async function startRedisCluster() {
  const nodes: { server: RedisServer; redis: Redis; busPort: number }[] = []
  for (let index = 0; index < nodesOfCluster; index++) {
    const busPort = await freePort()
    const bus = ['--cluster-port', String(busPort), '--cluster-node-timeout', '5000']
    const server = await startRedis(['--cluster-enabled', 'yes', ...bus])
    nodes.push({ server, redis: connectPatiently(server.url), busPort })
  }
  for (const [index, { redis }] of nodes.entries()) await joinCluster(redis, index)
  const [first, ...others] = nodes as [(typeof nodes)[number], ...typeof nodes]
  for (const { server, busPort } of others) {
    const address = ['127.0.0.1', String(server.port), String(busPort)]
    await first.redis.send('', ['CLUSTER', 'MEET', ...address])
  }
  for (const { redis } of nodes) await until(() => seesAll(redis))
  return {
    url: first.server.url,
    /** One connection to each node. */
    nodes: nodes.map(({ redis }) => redis),
    [Symbol.asyncDispose]: async () => {
      for (const { redis, server } of nodes) {
        redis.close()
        await server[Symbol.asyncDispose]()
      }
    },
  }
}

async function joinCluster(redis: Redis, index: number) {
  await until(async () => Boolean(await redis.send('', ['PING'])))
  const start = Math.ceil((slots * index) / nodesOfCluster)
  const end = Math.ceil((slots * (index + 1)) / nodesOfCluster) - 1
  await redis.send('', ['CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1)])
  await redis.send('', ['CLUSTER', 'ADDSLOTSRANGE', String(start), String(end)])
}

async function seesAll(redis: Redis): Promise<boolean> {
  const info = String(await redis.send('', ['CLUSTER', 'INFO']))
  const isComplete = info.includes(`cluster_known_nodes:${nodesOfCluster}`)
  return isComplete && info.includes('cluster_state:ok')
}
