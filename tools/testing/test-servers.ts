import { statfs } from 'node:fs/promises'

import { startThrowawayPostgres } from '../throwaway-postgres.ts'
import { startThrowawayRedis } from '../throwaway-redis.ts'

/** Tests copy a database of 500 files each; in memory that takes an eighth of the time that a disk needs. */
const memoryFolder = '/dev/shm'
const neededBytes = 4 * 2 ** 30

/** Nothing outlives these servers, so nothing waits for a disk. A test that crashes PostgreSQL starts a durable one itself. */
const settings = {
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '128MB',
  max_connections: '300',
}

/** The servers of one test run, unless the environment names some. */
export async function startTestServers() {
  const postgres = process.env['TEST_DATABASE_URL']
    ? undefined
    : await startThrowawayPostgres(settings, await folderForData())
  const redis = process.env['TEST_REDIS_URL'] ? undefined : await startThrowawayRedis()
  return {
    environment: {
      ...(postgres && { TEST_DATABASE_URL: postgres.url }),
      ...(redis && { TEST_REDIS_URL: redis.url }),
    },
    stop: async () => {
      await redis?.stop()
      await postgres?.stop()
    },
  }
}

/** undefined: the usual folder, on a disk. A container may have a few megabytes of shared memory only. */
async function folderForData(): Promise<string | undefined> {
  const { bavail, bsize } = await statfs(memoryFolder).catch(() => ({ bavail: 0, bsize: 0 }))
  return bavail * bsize >= neededBytes ? memoryFolder : undefined
}
