import { setTimeout as sleep } from 'node:timers/promises'

import { sweepChanges } from '#audit/change-store.ts'
import { sweepProcesses } from '#audit/process-store.ts'
import { sweepKeys } from '#http/idempotency-store.ts'
import type { Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import type { House } from './assemble.ts'

const sweepMs = 60_000
const rowsMax = 1000
const changesKeptMs = 24 * 60 * 60 * 1000

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
  while (!signal.aborted) {
    await sweepAll(house)
    await sleep(sweepMs, undefined, { signal }).catch(() => undefined)
  }
}

async function sweepAll(house: House) {
  const { now } = house
  await sweep(house, 'idempotency keys', (tx) => sweepKeys(tx, now(), rowsMax))
  await sweep(house, 'silent processes', (tx) => sweepProcesses(tx, rowsMax))
  await sweep(house, 'configuration changes', (tx) =>
    sweepChanges(tx, new Date(now().getTime() - changesKeptMs), rowsMax),
  )
}

/** Removes in small bites, so that no statement is long; what is left waits for the next round. */
async function sweep({ db, log }: House, what: string, remove: (tx: Tx) => Promise<number>) {
  try {
    for (let round = 0; round < 100; round++) {
      if ((await transact(db, remove)) < rowsMax) return
    }
  } catch (error) {
    log.problem(`sweeping ${what}`, error)
  }
}
