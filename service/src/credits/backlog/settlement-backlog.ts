import type { CallQueue, Settlement } from '#credits/settlement.ts'
import { createBacklog } from '#platform/backlog/backlog.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { readSettlements, writeSettlements } from './settlement-record.ts'

type Options = {
  settle: CallQueue['settle']
  files: TrustedFiles
  hasFolder: boolean
  mayDeliver(): boolean
  now: Clock
  log: Log
  metrics: Metrics
}

const prefix = 'settlements-'
/** For calls that are only recorded: releases that do not know these files leave them alone instead of charging them. */
const unbilledPrefix = 'unbilled-settlements-'
export const settlementPrefixes = [prefix, unbilledPrefix] as const

const prefixOf = (settlements: readonly Settlement[]) =>
  settlements.some(({ isOnlyRecorded }) => isOnlyRecorded) ? unbilledPrefix : prefix

/**
 * Keeps settlements that fail because the database is away. They are on disk before the call gets its receipt; settling
 * twice charges once.
 */
export function createSettlementBacklog({ settle, metrics, ...options }: Options) {
  return createBacklog({
    ...options,
    deliver: settle,
    format: {
      prefixes: settlementPrefixes,
      prefixOf,
      write: writeSettlements,
      read: readSettlements,
    },
    codes: {
      unwritten: 'settlement_neither_made_nor_written',
      waiting: 'settlements_waiting',
      failed: 'settlement_failed',
      caughtUp: 'settlements_caught_up',
    },
    onWritten: (settlements) => metrics.settlementsSpooled.inc(settlements),
    onWaiting: (count) => metrics.settlementsWaiting.set(count),
  })
}
