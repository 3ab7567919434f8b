import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { redisUrl } from '#testing/servers.ts'

import { connectRedis, type RedisOptions } from './redis.ts'
import { startRedisDouble } from './redis/testing/redis-double.ts'

function connect(url: string, further: Partial<RedisOptions> = {}) {
  const problems: Error[] = []
  const redis = connectRedis({
    url,
    isCluster: false,
    onProblem: (error) => problems.push(error),
    onReady: () => undefined,
    ...further,
  })
  onTestFinished(redis.close)
  return { redis, problems }
}

/** Accepts connections; answers the greeting of the functions' connection, and nothing else. */
const startSilentServer = () => startRedisDouble(() => undefined)

test('the first commands open the connection and wait for it, however many there are', async () => {
  // A deadline that no new connection keeps.
  const { redis, problems } = connect(redisUrl, { deadlineMs: 1 })
  const answers = await Promise.all(Array.from({ length: 20 }, () => redis.send('', ['PING'])))
  expect(answers.map(String)).toEqual(Array.from({ length: 20 }, () => 'PONG'))
  expect(problems).toEqual([])
})

test('hints arrive on a connection of their own', async () => {
  const channel = `test-${Math.random()}`
  const { redis } = connect(redisUrl, { deadlineMs: 5000 })
  const heard: string[] = []
  await redis.subscribe(channel, (message) => heard.push(message))
  await redis.publish(channel, 'changed')
  await waitUntil(() => heard.length > 0)
  expect(heard).toEqual(['changed'])
})

test('a server that accepts and never answers: commands fail, and closing leaves no connection', async () => {
  const { url, sockets, accepted } = await startSilentServer()
  const { redis } = connect(url, { deadlineMs: 5 })
  await expect(redis.send('', ['GET', 'a'])).rejects.toThrow(/answer|closed|offline/i)
  await expect(redis.send('', ['GET', 'a'])).rejects.toThrow(/answer|closed|offline/i)
  redis.close()
  await waitUntil(() => accepted() >= 2 && sockets.size === 0)
  await expect(redis.send('', ['GET', 'a'])).rejects.toThrow('closed')
})

test('a load without an answer replaces the connection of the functions', async () => {
  const { url, sockets, accepted } = await startSilentServer()
  const { redis } = connect(url, { deadlineMs: 5 })
  await waitUntil(() => accepted() === 1)
  const load = () => redis.sendToPrimaries(['FUNCTION', 'LOAD', 'REPLACE', '#!lua name=a'])
  await waitUntil(async () => {
    const reason = await load().catch((error: Error) => error.message)
    return reason === 'Redis did not answer in time'
  })
  await waitUntil(() => accepted() === 2)
  expect(sockets.size).toBe(1)
})
