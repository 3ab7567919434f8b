import { setTimeout as sleep } from 'node:timers/promises'

import type { SinkConfig } from '@gatehouse/contract/exports/sink-config'

import type { DestinationDeps, DestinationType } from '#exports/destinations/destination.ts'
import type { Destinations } from '#exports/destinations/destinations.ts'
import { portsOf } from '#exports/destinations/ports.ts'
import { ConfigUnusable, openSinkConfig } from '#exports/sinks/open-config.ts'
import type { SharedPace } from '#platform/background/run-task.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { SecretBox } from '#platform/secrets.ts'

import { deliverBatch, type DeliveryDeps, type Step } from './deliver-batch.ts'
import { fairShare } from './fair-share.ts'
import {
  type DeliveryLease,
  leaseCursors,
  LeaseLost,
  recordFailure,
  release,
} from './lease-store.ts'
import { sendDigest } from './send-digest.ts'
import { waitForProbeMs } from './wait-after-failure.ts'

/**
 * How many cursors a worker sends for at once: those that work, and those whose destinations fail. A destination that begins to
 * hang is still among those that work. So that many of them do not hold up the others, a turn that takes long leaves its place to
 * another one, up to a number that the memory for their batches allows. When most places are taken, organizations share the others
 * (`fairShare`), and slow turns end with their batch.
 */
const lanes = [
  { isFailing: false, atOnce: 24, slowMax: 40, perOrganization: 4 },
  { isFailing: true, atOnce: 8, slowMax: 0, perOrganization: 2 },
]
const slowMs = 1000
const idleMs = 500
const afterErrorMs = 5000
/** Then it is the turn of other cursors. */
const batchesPerTurn = 10
/** Less than a lease, which begins anew before each batch: two workers never send for the same cursor. */
const batchMaxMs = 27_000
/** Far less than a lease, which begins anew with each batch. A cursor that rests for longer does not keep its place. */
const restInPlaceMs = idleMs

type Deps = {
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  secretBox: SecretBox
  destinations: Destinations
  request: DestinationDeps['request']
  pace: SharedPace
}

/** Sends events and checkpoints to the sinks of all organizations, until `signal` aborts. Any number of workers may. */
export async function deliverEvents(deps: Deps, signal: AbortSignal) {
  const throttle = createLogThrottle(deps)
  const onFailure = (error: unknown) => {
    if (!(error instanceof LeaseLost)) throttle('export_delivery_failed', error)
  }
  await Promise.all(lanes.map((lane) => runLane({ ...deps, ...lane, onFailure }, signal)))
}

type LaneDeps = Deps & (typeof lanes)[number] & { onFailure(error: unknown): void }
type TurnDeps = LaneDeps & {
  /** Whether others may be waiting for a place. */
  isCrowded(): boolean
}

async function runLane(deps: LaneDeps, signal: AbortSignal) {
  const { db, isFailing, atOnce, slowMax, perOrganization, onFailure } = deps
  const running = new Map<Promise<void>, number>()
  const capacity = atOnce + slowMax
  const isCrowded = () => running.size >= capacity / 2
  const countFree = () => {
    const slow = running.values().filter((startedAtMs) => startedAtMs < performance.now() - slowMs)
    return atOnce - running.size + Math.min(slowMax, [...slow].length)
  }
  while (!signal.aborted) {
    const share = fairShare(running.size, capacity, perOrganization)
    const limit = Math.min(countFree(), share.places)
    const lease = () => leaseCursors(db, { ...share, isFailing, limit })
    const leases = limit > 0 ? await lease().catch((error: unknown) => onFailure(error)) : []
    for (const leased of leases ?? []) {
      const work: Promise<void> = takeTurn(leased, { ...deps, isCrowded }, signal)
        .catch((error: unknown) => giveUp(leased, error, deps))
        .finally(() => running.delete(work))
      running.set(work, performance.now())
    }
    const isFull = (leases?.length ?? 0) === limit
    if (isFull) await Promise.race([sleep(idleMs), ...running.keys()])
    else await sleep(idleMs, undefined, { signal }).catch(() => undefined)
  }
  await Promise.all(running.keys())
}

/** The database was away, or there is a fault of ours: another try soon, and not only when the lease ends. */
async function giveUp(lease: DeliveryLease, error: unknown, { db, onFailure }: LaneDeps) {
  onFailure(error)
  await release(db, lease, afterErrorMs).catch(() => undefined)
}

async function takeTurn(lease: DeliveryLease, deps: TurnDeps, stopping: AbortSignal) {
  const startedAtMs = performance.now()
  const isOver = () => deps.isCrowded() && performance.now() - startedAtMs > slowMs
  const prepare = prepareTurn(lease, deps, stopping)
  if ('error' in prepare) {
    const failure = { ...prepare, state: 'error', waitMs: waitForProbeMs() } as const
    return recordFailure(deps.db, lease, failure)
  }
  let current = lease
  if (!(await sendDigest(current, prepare.withDeadline()))) return
  for (let batch = 0; batch < batchesPerTurn && !stopping.aborted; batch++) {
    const { step, restMs } = await deliverPaced(current, prepare, deps.pace)
    if (step.isReleased) return
    current = step.lease
    if (restMs > restInPlaceMs) return release(deps.db, current, restMs)
    if (restMs > 0) await sleep(restMs, undefined, { signal: stopping }).catch(() => undefined)
    if (isOver()) break
  }
  await release(deps.db, current)
}

/**
 * Reading events and moving cursors is paced while a cursor catches up: a sink that was away for long must not take the database
 * and the processor from calls. The time of the destination costs nothing here. A batch with nothing after it delivers what has
 * just happened, and has no rest.
 */
async function deliverPaced(
  lease: DeliveryLease,
  turn: Turn,
  pace: SharedPace,
): Promise<{ step: Step; restMs: number }> {
  const startedAtMs = performance.now()
  let sentMs = 0
  const onSent = (tookMs: number) => void (sentMs = tookMs)
  const step = await deliverBatch(lease, turn.withDeadline(onSent))
  const workedMs = performance.now() - startedAtMs - sentMs
  // Batches that are kept small find an event that the destination refuses: each is little work, and many follow each other.
  const isKeptSmall = lease.batchMax !== null
  const isCatchingUp = step.hasMore && !isKeptSmall && !step.isReleased
  if (isCatchingUp) return { step, restMs: pace.restAfter(workedMs) }
  pace.note(workedMs)
  return { step, restMs: 0 }
}

type Turn = {
  /** What one batch needs, which has to be sent in time. */
  withDeadline(onSent?: (tookMs: number) => void): DeliveryDeps
}

/** An error if the configuration of the sink cannot be used. */
function prepareTurn(
  { sink }: DeliveryLease,
  { db, now, metrics, secretBox, destinations, request }: LaneDeps,
  stopping: AbortSignal,
): Turn | { error: string } {
  const config = tryOpening(() => openSinkConfig(sink, secretBox))
  if (config instanceof ConfigUnusable) return { error: config.message }
  const { type } = sink
  const destination = destinations[type] as DestinationType<SinkConfig>
  const count = (outcome: string, events: number) => {
    metrics.exportBatches.inc({ type, outcome })
    if (outcome === 'delivered' || outcome === 'itemised')
      metrics.exportEvents.inc({ type }, events)
  }
  return {
    withDeadline(onSent = () => undefined) {
      const signal = AbortSignal.any([stopping, AbortSignal.timeout(batchMaxMs)])
      const calls: DestinationDeps = {
        request: (address, call) => request(address, { ...call, ports: portsOf[type], signal }),
        now,
        signal,
      }
      return {
        db,
        destination,
        config,
        calls,
        stopping,
        onSent(outcome, events, tookMs) {
          count(outcome, events)
          onSent(tookMs)
        },
      }
    },
  }
}

function tryOpening(open: () => SinkConfig): SinkConfig | ConfigUnusable {
  try {
    return open()
  } catch (error) {
    if (error instanceof ConfigUnusable) return error
    throw error
  }
}
