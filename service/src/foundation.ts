import { holdPool } from '#credits/holds/hold-pool.ts'
import { createInstallation } from '#installation/installation.ts'
import { createBoundedOutput, standardOutput } from '#platform/bounded-output.ts'
import { type Clock, steadyClock, systemClock } from '#platform/clock.ts'
import { connectDatabase } from '#platform/database.ts'
import { createEgress, createTenantEgress } from '#platform/egress.ts'
import { createAddressFinder, type FindAddresses } from '#platform/egress/find-addresses.ts'
import { createLog, type Log, type LogLevel } from '#platform/log.ts'
import { createMetrics, type Metrics } from '#platform/metrics.ts'
import { connectRedis, type Redis } from '#platform/redis.ts'
import { deriveKeys } from '#platform/secrets.ts'
import {
  type StartedDirectory,
  watchStateDirectory,
} from '#platform/state-directory/watch-directory.ts'
import { createTrustedFiles } from '#platform/trusted-file.ts'

import type { Config } from './config.ts'

/** What a test may replace. */
export type Edges = {
  now?: Clock
  /** `now` unless given. */
  steadyNow?: Clock
  log?: Log
  /** Where the keys of upstreams are read from, if not from files. */
  environment?: Readonly<Record<string, string | undefined>>
  /** Resolves the host names in media URLs. */
  findAddresses?: FindAddresses
  /** Which of several processes with the same supervisor this is. */
  processNumber?: number
  /** What the checks of the start have found out about the database and the state directory. */
  started?: StartedDirectory
}

/** Clock, log, metrics and connections: what every feature is built on. */
export function layFoundation(config: Config, edges: Edges) {
  const { now = systemClock, environment = {} } = edges
  const steadyNow = edges.steadyNow ?? edges.now ?? steadyClock
  const metrics = createMetrics()
  const log = edges.log ?? openLog(config.LOG_LEVEL, metrics, edges.processNumber)
  const connect = (poolSize: number, waits: { lockTimeoutMs?: number } = {}) =>
    connectDatabase({
      url: config.DATABASE_URL,
      poolSize,
      ...waits,
      onProblem: (error) => log.problem('database_connection_broken', error),
    })
  const db = connect(config.DATABASE_POOL_SIZE)
  // Requests that fill the pool must not keep a revocation from arriving: one connection polls, one applies.
  const changesDb = connect(2)
  const creditsDb = connect(holdPool.poolSize, { lockTimeoutMs: holdPool.lockTimeoutMs })
  const redis = openRedis(config, log)
  const { closeEgress, ...egresses } = openEgress(config)
  const files = createTrustedFiles({
    directory: config.STATE_DIRECTORY,
    now,
    keys: deriveKeys(config.MASTER_KEYS, 'file-authentication'),
  })
  const installation = createInstallation({ db, keyring: config.MASTER_KEYS, log })
  const stateDirectory = watchStateDirectory({
    directory: config.STATE_DIRECTORY,
    started: edges.started,
    findDatabaseId: installation.findId,
    log,
    metrics,
  })
  return {
    config,
    environment,
    /** What this process reports of itself. Features that know better set it. */
    self: { isReady: false, countsLocally: () => false },
    processNumber: edges.processNumber,
    now,
    steadyNow,
    log,
    metrics,
    db,
    changesDb,
    creditsDb,
    redis,
    ...egresses,
    findAddresses: edges.findAddresses ?? createAddressFinder(),
    files,
    installation,
    stateDirectory,
    async stop() {
      await stateDirectory.stop()
      redis?.close()
      await closeEgress()
      await Promise.all([db, changesDb, creditsDb].map((each) => each.destroy()))
    },
  }
}
export type Foundation = ReturnType<typeof layFoundation>

function openEgress(config: Config) {
  const egress = createEgress({ privateTargets: config.EGRESS_PRIVATE_TARGETS })
  // Tenants choose where this one calls, so the addresses that only the service itself may call are not on its list.
  const tenants = { privateTargets: config.EXPORT_PRIVATE_TARGETS }
  const exportEgress = createTenantEgress(tenants)
  // Calls wait for guardrails, and each of them has several questions.
  const limits = { connections: 32, callsMax: 1024 }
  const guardrailEgress = createTenantEgress({ ...tenants, limits })
  return {
    egress,
    exportEgress,
    guardrailEgress,
    async closeEgress() {
      await egress.close()
      await exportEgress.close()
      await guardrailEgress.close()
    },
  }
}

/** Processes that share an output name themselves in each line. */
function openLog(level: LogLevel, metrics: Metrics, processNumber: number | undefined): Log {
  const onDropped = () => metrics.logDropped.inc()
  const output = createBoundedOutput(standardOutput(), { onDropped })
  if (processNumber === undefined) return createLog(level, output)
  const start = `{"process":${processNumber},`
  return createLog(level, { write: (line) => output.write(start + line.slice(1)) })
}

function openRedis(config: Config, log: Log): Redis | undefined {
  const { REDIS_URL, REDIS_CLUSTER, REDIS_DEADLINE_MS } = config
  if (!REDIS_URL) return undefined
  let isAway = false
  return connectRedis({
    url: REDIS_URL,
    isCluster: REDIS_CLUSTER,
    deadlineMs: REDIS_DEADLINE_MS,
    // Reconnection attempts repeat the same problem many times a minute: logged once per outage.
    onProblem: (error) => {
      if (!isAway) log.problem('redis_away', error)
      isAway = true
    },
    onReady: () => {
      if (isAway) log.event('redis_back')
      isAway = false
    },
  })
}
