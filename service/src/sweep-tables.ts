import { sweepSessions } from '#access/sessions/open-session-store.ts'
import { sweepChanges } from '#audit/change-store.ts'
import { sweepProcesses } from '#audit/process-store.ts'
import { sweepPaymentEvents } from '#credits/stripe/sweep-events.ts'
import { sweepCallers, sweepDecisionCounts } from '#gateway-config/rollout/decision-count-store.ts'
import { sweepKeys } from '#http/mutation/idempotency-store.ts'
import { inBatches } from '#platform/background/in-batches.ts'
import type { TaskTurn } from '#platform/background/run-task.ts'
import { transact } from '#platform/transaction.ts'
import { sweepDecisions } from '#policies/decisions/decision-store.ts'
import { sweepDevices } from '#sign-in/device/device-store.ts'
import { sweepUsedTokens } from '#sign-in/members/used-token-store.ts'
import { sweepRefusals } from '#sign-in/refusals/record-refusals.ts'
import { sweepRefusalBatches, sweepRefusalSums } from '#traffic/refusals/refusal-store.ts'
import { sweepKeySums, sweepSums } from '#traffic/sums/sum-store.ts'

import { sweepFreeRequests } from './access/free-tier/free-request-store.ts'
import { sweepLinks } from './access/member-links/link-store.ts'
import type { House } from './assemble.ts'
import { sweepBudgetAlerts } from './credits/budgets/alert-store.ts'
import { sweepQuotaUsage } from './limits/quotas/usage-store.ts'

const dayMs = 24 * 60 * 60 * 1000
const changesKeptMs = dayMs
/** So long the secret of an ended session is known as such. Later it is an unknown one, and counts as a guess. */
const sessionsKeptMs = dayMs
/** Twice the longest window. */
const quotasKeptMs = 62 * dayMs
/** Twice the longest window of a rollback. */
const decisionCountsKeptMs = 2 * dayMs
/** A little longer than the longest chart. */
const decisionsKeptMs = 400 * dayMs
/** So that a program that asks late learns that its code has expired. */
const devicesKeptMs = 60 * 60 * 1000
/** As the specification promises (docs/specification/traffic.md#traffic). */
const trafficKeptMs = { minute: 2 * dayMs, hour: 90 * dayMs, day: 400 * dayMs } as const
const keySumsKeptMs = 90 * dayMs
const refusalSumsKeptMs = 30 * dayMs
/** Longer than any process repeats a batch. */
const refusalBatchesKeptMs = 7 * dayMs
const paymentEventsKeptMs = 90 * dayMs

/** How many rows are removed from a table in one transaction, at most. */
export const sweptMax = 500

type Sweep = {
  failureCode: string
  /** Removes at most `sweptMax` rows; returns how many. */
  remove(): Promise<number>
}

/**
 * Removes old rows from every table, one table after the other. A table that fails does not stop the others; the failure is
 * thrown at the end, so that the pass counts as failed.
 */
export async function sweepTables(house: House, { rest, signal }: TaskTurn) {
  const failed: string[] = []
  for (const { failureCode, remove } of listSweeps(house)) {
    try {
      await inBatches(rest, sweptMax, remove)
    } catch (error) {
      if (signal.aborted) return
      house.log.problem(failureCode, error)
      failed.push(failureCode)
    }
    await rest()
  }
  if (failed.length > 0) throw new Error(`Some tables were not swept: ${failed.join(', ')}.`)
}

function listSweeps(house: House): Sweep[] {
  const { db, now } = house
  const before = (keptMs: number) => new Date(now().getTime() - keptMs)
  return [
    {
      failureCode: 'idempotency_keys_sweep_failed',
      remove: () => transact(db, (tx) => sweepKeys(tx, now(), sweptMax)),
    },
    {
      failureCode: 'free_requests_sweep_failed',
      remove: () => transact(db, (tx) => sweepFreeRequests(tx, now(), sweptMax)),
    },
    {
      failureCode: 'payment_events_sweep_failed',
      remove: () => sweepPaymentEvents(house, before(paymentEventsKeptMs), sweptMax),
    },
    {
      failureCode: 'quota_usage_sweep_failed',
      remove: () => transact(db, (tx) => sweepQuotaUsage(tx, before(quotasKeptMs), sweptMax)),
    },
    {
      failureCode: 'budget_alerts_sweep_failed',
      remove: () => transact(db, (tx) => sweepBudgetAlerts(tx, before(quotasKeptMs), sweptMax)),
    },
    {
      failureCode: 'gateway_decisions_sweep_failed',
      remove: () =>
        transact(db, (tx) => sweepDecisionCounts(tx, before(decisionCountsKeptMs), sweptMax)),
    },
    {
      failureCode: 'gateway_callers_sweep_failed',
      remove: () => transact(db, (tx) => sweepCallers(tx, before(decisionCountsKeptMs), sweptMax)),
    },
    {
      failureCode: 'policy_decisions_sweep_failed',
      remove: () => transact(db, (tx) => sweepDecisions(tx, before(decisionsKeptMs), sweptMax)),
    },
    ...listTrafficSweeps(house),
    ...listSignInSweeps(house),
    {
      failureCode: 'silent_processes_sweep_failed',
      remove: () => transact(db, (tx) => sweepProcesses(tx, sweptMax)),
    },
    {
      failureCode: 'configuration_changes_sweep_failed',
      remove: () => transact(db, (tx) => sweepChanges(tx, before(changesKeptMs), sweptMax)),
    },
  ]
}

function listSignInSweeps(house: House): Sweep[] {
  const { db, now } = house
  const before = (keptMs: number) => new Date(now().getTime() - keptMs)
  return [
    {
      failureCode: 'refused_sign_ins_sweep_failed',
      remove: () => sweepRefusals(house, sweptMax),
    },
    {
      failureCode: 'sessions_sweep_failed',
      remove: () => transact(db, (tx) => sweepSessions(tx, before(sessionsKeptMs), sweptMax)),
    },
    {
      failureCode: 'used_tokens_sweep_failed',
      remove: () => transact(db, (tx) => sweepUsedTokens(tx, now(), sweptMax)),
    },
    {
      failureCode: 'member_links_sweep_failed',
      remove: () => transact(db, (tx) => sweepLinks(tx, now(), sweptMax)),
    },
    {
      failureCode: 'devices_sweep_failed',
      remove: () => transact(db, (tx) => sweepDevices(tx, before(devicesKeptMs), sweptMax)),
    },
  ]
}

function listTrafficSweeps({ db, now }: House): Sweep[] {
  const before = (keptMs: number) => new Date(now().getTime() - keptMs)
  return [
    ...(['minute', 'hour', 'day'] as const).map((span) => ({
      failureCode: 'traffic_sweep_failed',
      remove: () =>
        transact(db, (tx) => sweepSums(tx, span, before(trafficKeptMs[span]), sweptMax)),
    })),
    {
      failureCode: 'traffic_keys_sweep_failed',
      remove: () => transact(db, (tx) => sweepKeySums(tx, before(keySumsKeptMs), sweptMax)),
    },
    {
      failureCode: 'refusals_sweep_failed',
      remove: () => transact(db, (tx) => sweepRefusalSums(tx, before(refusalSumsKeptMs), sweptMax)),
    },
    {
      failureCode: 'refusal_batches_sweep_failed',
      remove: () =>
        transact(db, (tx) => sweepRefusalBatches(tx, before(refusalBatchesKeptMs), sweptMax)),
    },
  ]
}
