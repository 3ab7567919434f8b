import { auditLogTasks } from '#audit/log/log-tasks.ts'
import { createSigningKeys } from '#audit/log/signing-keys.ts'
import { keepPartitions } from '#audit/partitions/keep-partitions.ts'
import { announceGaps } from '#exports/delivery/announce-gaps.ts'
import { deliverEvents } from '#exports/delivery/deliver-events.ts'
import { measureDelivery } from '#exports/delivery/measure-delivery.ts'
import { candidatesMax } from '#gateway-config/rollout/decision-count-store.ts'
import { rollBackSpikes } from '#gateway-config/rollout/roll-back-spikes.ts'
import { inBatches } from '#platform/background/in-batches.ts'
import { runTask, type Task } from '#platform/background/run-task.ts'
import { comparedMax, compareSessions } from '#sign-in/members/compare-sessions.ts'
import { trafficTask } from '#traffic/sums/sum-events.ts'

import type { House } from './assemble.ts'
import { sweepHolds } from './credits/holds/sweep-store.ts'
import { entriesMax } from './credits/reconcile/check-news.ts'
import { reconcileOnce } from './credits/reconcile/reconcile-hourly.ts'
import { sweepTables, sweptMax } from './sweep-tables.ts'

/** Fewer than for other tables, because a sweep locks the accounts of its holds. */
const holdsMax = 100

/** The role for background tasks. Any number of workers may run: every task is safe to do twice. */
export function startWorker(house: House) {
  const stopping = new AbortController()
  const running = Promise.all(listTasks(house).map((task) => runTask(task, house, stopping.signal)))
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}

/**
 * Everything that a worker does, each task with the share of one core that it may take. Calls use the same processors and the
 * same database, so background work may be late but must never take much at once. `docs/operations.md` has the same table.
 */
export function listTasks(house: House): Task[] {
  const { config, exports, mutations } = house
  const seeds = config.AUDIT_SIGNING_KEYS
  return [
    ...auditLogTasks({ ...house, keys: seeds && createSigningKeys(seeds) }),
    ...sweeps(house),
    {
      name: 'rollbacks',
      // Together with the time that a change needs to reach every process, a rollback takes less than 5 seconds.
      everyMs: 2000,
      share: 0.2,
      // A pass that waited for a lock or for the database must not delay the next one further: `everyMs` is a long enough rest.
      restMaxMs: 1000,
      rowsMax: candidatesMax,
      failureCode: 'rollback_check_failed',
      run: () => rollBackSpikes(house),
    },
    {
      name: 'claims_comparison',
      everyMs: 5000,
      share: 0.2,
      rowsMax: comparedMax,
      failureCode: 'claims_comparison_failed',
      run: (turn) => compareSessions(house.signIn.deps, turn),
    },
    {
      name: 'event_delivery',
      everyMs: 500,
      share: 0.5,
      rowsMax: 10_000,
      failureCode: 'export_delivery_failed',
      loop: (pace, signal) =>
        deliverEvents({ ...house, ...exports, secretBox: mutations.secretBox, pace }, signal),
    },
    {
      name: 'delivery_measurement',
      everyMs: 30_000,
      share: 0.1,
      rowsMax: null,
      failureCode: 'export_delivery_not_measured',
      async run() {
        await measureDelivery(house)
      },
    },
    trafficTask(house.db),
    {
      name: 'ledger_check',
      everyMs: 60 * 60 * 1000,
      // Delayed, so that starting many processes does not load the database.
      firstMs: 30_000,
      afterFailureMs: 60_000,
      share: 0.1,
      rowsMax: entriesMax,
      failureCode: 'ledger_check_failed',
      run: (turn) => reconcileOnce(house, turn),
    },
  ]
}

const sweeps = (house: House): Task[] => [
  {
    name: 'expired_holds',
    everyMs: 5000,
    share: 0.25,
    rowsMax: holdsMax,
    failureCode: 'expired_holds_sweep_failed',
    async run({ rest }) {
      await inBatches(rest, holdsMax, async () => {
        const swept = await sweepHolds(house.db, holdsMax)
        house.metrics.holdsExpired.inc(swept)
        return swept
      })
    },
  },
  {
    name: 'sweeps',
    everyMs: 60_000,
    share: 0.1,
    rowsMax: sweptMax,
    failureCode: 'sweeps_failed',
    run: (turn) => sweepTables(house, turn),
  },
  {
    name: 'partitions',
    everyMs: 60_000,
    share: 0.1,
    rowsMax: 1,
    failureCode: 'event_partitions_failed',
    async run({ rest }) {
      await keepPartitions({
        ...house,
        retentionDays: house.config.AUDIT_RETENTION_DAYS,
        beforeDrop: (tx, days) => announceGaps(tx, days, house.now()),
        rest,
      })
    },
  },
]
