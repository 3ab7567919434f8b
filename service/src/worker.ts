import { setTimeout as sleep } from 'node:timers/promises'

import { sweepFreeRequests } from '#access/free-request-store.ts'
import { sweepChanges } from '#audit/change-store.ts'
import { sweepProcesses } from '#audit/process-store.ts'
import { reconcileHourly } from '#credits/reconcile-hourly.ts'
import { sweepPaymentEvents } from '#credits/stripe/sweep-events.ts'
import { sweepHolds } from '#credits/sweep-store.ts'
import { sweepKeys } from '#http/idempotency-store.ts'
import type { Tx } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'

import type { House } from './assemble.ts'

const sweepMs = 60_000
const sweepHoldsMs = 5000
const rowsMax = 500
/** Fewer: while they are let go, their accounts are locked. */
const holdsMax = 100
const changesKeptMs = 24 * 60 * 60 * 1000
const paymentEventsKeptMs = 90 * 24 * 60 * 60 * 1000

/** The role that works behind the scenes. Any number may run: every task is safe to do twice. */
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
  await Promise.all([
    repeat(sweepMs, signal, () => sweepAll(house)),
    repeat(sweepHoldsMs, signal, () => sweepExpiredHolds(house)),
    reconcileHourly(house, signal),
  ])
}

/** Never twice at once, and until it is told to stop. */
async function repeat(everyMs: number, signal: AbortSignal, work: () => Promise<void>) {
  while (!signal.aborted) {
    await work()
    await sleep(everyMs, undefined, { signal }).catch(() => undefined)
  }
}

/** What a call that never ended had promised is free again; its end is written down as unknown. */
async function sweepExpiredHolds({ db, log, metrics }: House) {
  const sweepSome = async () => {
    const swept = await sweepHolds(db, holdsMax)
    metrics.holdsExpired.inc(swept)
    return swept
  }
  await inBites(log, 'expired holds', sweepSome, holdsMax)
}

async function sweepAll(house: House) {
  const { now, log } = house
  await sweep(house, 'idempotency keys', (tx) => sweepKeys(tx, now(), rowsMax))
  await sweep(house, 'free requests', (tx) => sweepFreeRequests(tx, now(), rowsMax))
  await inBites(log, 'payment events', () =>
    sweepPaymentEvents(house, new Date(now().getTime() - paymentEventsKeptMs), rowsMax),
  )
  await sweep(house, 'silent processes', (tx) => sweepProcesses(tx, rowsMax))
  await sweep(house, 'configuration changes', (tx) =>
    sweepChanges(tx, new Date(now().getTime() - changesKeptMs), rowsMax),
  )
}

const sweep = ({ db, log }: House, what: string, remove: (tx: Tx) => Promise<number>) =>
  inBites(log, what, () => transact(db, remove))

/** In small bites, so that no statement is long; what is left waits for the next round. */
async function inBites(log: Log, what: string, remove: () => Promise<number>, biteMax = rowsMax) {
  try {
    for (let round = 0; round < 100; round++) {
      if ((await remove()) < biteMax) return
    }
  } catch (error) {
    log.problem(`sweeping ${what}`, error)
  }
}
