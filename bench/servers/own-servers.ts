import { startThrowawayPostgres } from '@gatehouse/tools/throwaway-postgres'
import { startThrowawayRedis } from '@gatehouse/tools/throwaway-redis'

import { deferStop } from '../defer-stop.ts'

/**
 * PostgreSQL's own defaults instead of those for tests; commits are durable. Statements are counted only where they are
 * the figure, because counting them costs time.
 */
const settings = { shared_buffers: '128MB', checkpoint_timeout: '5min' }
const counting = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'top',
}

/** A PostgreSQL and a Redis that nothing else uses, so that all of their CPU time belongs to the calls. */
export async function startOwnServers(
  cleanup: AsyncDisposableStack,
  { isCounting = false }: { isCounting?: boolean } = {},
) {
  const further = isCounting ? { ...settings, ...counting } : settings
  const postgres = await deferStop(await startThrowawayPostgres(further), cleanup)
  const redis = await deferStop(await startThrowawayRedis(), cleanup)
  return {
    postgres: { url: postgres.url, pids: [postgres.pid()], query: postgres.query },
    redis: { url: redis.url, pids: [redis.pid], port: redis.port },
  }
}
export type OwnServers = Awaited<ReturnType<typeof startOwnServers>>
