import { sweepChanges } from '#audit/change-store.ts'
import { keepAuditLog } from '#audit/log/keep-log.ts'
import { createSigningKeys } from '#audit/log/signing-keys.ts'
import { keepPartitions } from '#audit/partitions/keep-partitions.ts'
import { sweepProcesses } from '#audit/process-store.ts'
import { sweepPaymentEvents } from '#credits/stripe/sweep-events.ts'
import { announceGaps } from '#exports/delivery/announce-gaps.ts'
import { deliverEvents } from '#exports/delivery/deliver-events.ts'
import { measureDelivery } from '#exports/delivery/measure-delivery.ts'
import { sweepKeys } from '#http/idempotency-store.ts'
import { repeat } from '#platform/background/repeat.ts'
import type { Tx } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'
import { sweepDecisions } from '#policies/decisions/decision-store.ts'
import { sweepCallers, sweepDecisionCounts } from '#policy-gateway/rollout/decision-count-store.ts'
import { rollBackSpikes } from '#policy-gateway/rollout/roll-back-spikes.ts'

import { sweepFreeRequests } from './access/free-tier/free-request-store.ts'
import type { House } from './assemble.ts'
import { sweepBudgetAlerts } from './credits/budgets/alert-store.ts'
import { sweepHolds } from './credits/holds/sweep-store.ts'
import { reconcileHourly } from './credits/reconcile/reconcile-hourly.ts'
import { sweepQuotaUsage } from './limits/quotas/usage-store.ts'

const sweepMs = 60_000
const sweepHoldsMs = 5000
/** With the way of a change to every process, a rollback takes less than 5 seconds. */
const rollBackMs = 2000
const measureMs = 30_000
const rowsMax = 500
/** Fewer than rows of other tables: a sweep locks the accounts of its holds. */
const holdsMax = 100
const changesKeptMs = 24 * 60 * 60 * 1000
/** Twice the longest window. */
const quotasKeptMs = 62 * 24 * 60 * 60 * 1000
/** Twice the longest window of a rollback. */
const decisionCountsKeptMs = 2 * 24 * 60 * 60 * 1000
/** A little longer than the longest chart. */
const decisionsKeptMs = 400 * 24 * 60 * 60 * 1000
const paymentEventsKeptMs = 90 * 24 * 60 * 60 * 1000

/** The role for background tasks. Any number of workers may run: every task is safe to do twice. */
export function startWorker(house: House) {
  const stopping = new AbortController()
  const running = run(house, stopping.signal)
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}

async function run(house: House, signal: AbortSignal) {
  const seeds = house.config.AUDIT_SIGNING_KEYS
  await Promise.all([
    repeatEvery(sweepMs, signal, () => sweepAll(house)),
    repeatEvery(sweepHoldsMs, signal, () => sweepExpiredHolds(house)),
    repeatEvery(rollBackMs, signal, () => rollBackSpikes(house)),
    keepAuditLog({ ...house, keys: seeds && createSigningKeys(seeds) }, signal),
    deliverEvents({ ...house, ...house.exports, secretBox: house.mutations.secretBox }, signal),
    repeatEvery(measureMs, signal, () => measureDelivery(house)),
    reconcileHourly(house, signal),
  ])
}

/** Runs `work` again and again, one run at a time, until `signal` aborts. */
const repeatEvery = (everyMs: number, signal: AbortSignal, work: () => Promise<void>) =>
  repeat(signal, async () => {
    await work()
    return everyMs
  })

/** Releases the holds of calls that were never settled. */
async function sweepExpiredHolds({ db, log, metrics }: House) {
  const sweepSome = async () => {
    const swept = await sweepHolds(db, holdsMax)
    metrics.holdsExpired.inc(swept)
    return swept
  }
  await inBatches(log, 'expired_holds_sweep_failed', sweepSome, holdsMax)
}

async function sweepAll(house: House) {
  const { db, now, log, config } = house
  await keepPartitions({
    db,
    log,
    retentionDays: config.AUDIT_RETENTION_DAYS,
    beforeDrop: (tx, days) => announceGaps(tx, days, now()),
  })
  await sweep(house, 'idempotency_keys_sweep_failed', (tx) => sweepKeys(tx, now(), rowsMax))
  await sweep(house, 'free_requests_sweep_failed', (tx) => sweepFreeRequests(tx, now(), rowsMax))
  await inBatches(log, 'payment_events_sweep_failed', () =>
    sweepPaymentEvents(house, new Date(now().getTime() - paymentEventsKeptMs), rowsMax),
  )
  const quotasBefore = new Date(now().getTime() - quotasKeptMs)
  await sweep(house, 'quota_usage_sweep_failed', (tx) => sweepQuotaUsage(tx, quotasBefore, rowsMax))
  await sweep(house, 'budget_alerts_sweep_failed', (tx) =>
    sweepBudgetAlerts(tx, quotasBefore, rowsMax),
  )
  const decisionsBefore = new Date(now().getTime() - decisionCountsKeptMs)
  await sweep(house, 'gateway_decisions_sweep_failed', (tx) =>
    sweepDecisionCounts(tx, decisionsBefore, rowsMax),
  )
  await sweep(house, 'gateway_callers_sweep_failed', (tx) =>
    sweepCallers(tx, decisionsBefore, rowsMax),
  )
  await sweep(house, 'policy_decisions_sweep_failed', (tx) =>
    sweepDecisions(tx, new Date(now().getTime() - decisionsKeptMs), rowsMax),
  )
  await sweep(house, 'silent_processes_sweep_failed', (tx) => sweepProcesses(tx, rowsMax))
  await sweep(house, 'configuration_changes_sweep_failed', (tx) =>
    sweepChanges(tx, new Date(now().getTime() - changesKeptMs), rowsMax),
  )
}

const sweep = ({ db, log }: House, failureCode: string, remove: (tx: Tx) => Promise<number>) =>
  inBatches(log, failureCode, () => transact(db, remove))

/** Sweeps in batches, so that no statement takes long; what is left waits for the next sweep. */
async function inBatches(
  log: Log,
  failureCode: string,
  remove: () => Promise<number>,
  batchMax = rowsMax,
) {
  try {
    for (let round = 0; round < 100; round++) {
      if ((await remove()) < batchMax) return
    }
  } catch (error) {
    log.problem(failureCode, error)
  }
}
