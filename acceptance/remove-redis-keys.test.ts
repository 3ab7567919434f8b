import { removeRedisKeys, startThrowawayRedis } from '@gatehouse/tools/throwaway-redis'
import { expect, onTestFinished, test } from 'vitest'

test('all keys of a namespace are removed, and no others', async () => {
  const redis = await startThrowawayRedis()
  onTestFinished(redis.stop)
  await redis.command('eval', 'for i = 1, 3000 do redis.call("set", "mine:" .. i, i) end', '0')
  for (const other of ['mine', 'mine2:a', 'other:mine:a']) await redis.command('set', other, 'x')
  expect(await removeRedisKeys(redis.url, 'mine')).toBe(3000)
  expect((await redis.command('keys', '*')).split('\n').toSorted()).toEqual([
    'mine',
    'mine2:a',
    'other:mine:a',
  ])
  expect(await removeRedisKeys(redis.url, 'mine')).toBe(0)
})

test('a server that is gone has nothing to remove', async () => {
  const redis = await startThrowawayRedis()
  await redis.stop()
  expect(await removeRedisKeys(redis.url, 'mine')).toBe(0)
})

test('a namespace with characters of a pattern is refused', async () => {
  await expect(removeRedisKeys('redis://127.0.0.1:1', '*')).rejects.toThrow("'*' is no namespace.")
})
