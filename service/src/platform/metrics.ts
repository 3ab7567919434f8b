import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Every metric there is. Units stand last in the name; no organization is ever a label. */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    ...limitMetrics(registers),
    ...inferenceMetrics(registers),
    ...creditMetrics(registers),
    requestSeconds: new Histogram({
      name: 'gatehouse_request_seconds',
      help: 'Time from the first byte of a request to the last byte of its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    requestsInFlight: new Gauge({
      name: 'gatehouse_requests_in_flight',
      help: 'Requests whose answer is not finished.',
      registers,
    }),
    keyLookups: new Counter({
      name: 'gatehouse_credential_lookups_total',
      help: 'How credentials were recognised.',
      labelNames: ['result'],
      registers,
    }),
    guessesRefused: new Counter({
      name: 'gatehouse_credential_guesses_refused_total',
      help: 'Credentials refused unseen, because their sender guessed too often.',
      registers,
    }),
    changesPolledAt: new Gauge({
      name: 'gatehouse_changes_polled_timestamp_seconds',
      help: 'When the last successful poll for configuration changes began.',
      registers,
    }),
    changesSeen: new Counter({
      name: 'gatehouse_changes_seen_total',
      help: 'Configuration changes received.',
      registers,
    }),
    policySnapshots: new Gauge({
      name: 'gatehouse_policy_snapshots',
      help: 'Organizations whose policies are in memory.',
      registers,
    }),
    policyFailures: new Gauge({
      name: 'gatehouse_policy_apply_failures',
      help: 'Organizations whose newest policies could not be put in force here.',
      registers,
    }),
    hintsLost: new Counter({
      name: 'gatehouse_change_hints_lost_total',
      help: 'Change hints that Redis did not take; the poll covers them.',
      registers,
    }),
  }
}
function limitMetrics(registers: Registry[]) {
  return {
    limitsAreLocal: new Gauge({
      name: 'gatehouse_limits_local',
      help: '1 while this process enforces its own share of the limits, because Redis is away.',
      labelNames: ['kind'],
      registers,
    }),
    limitSlotsLost: new Counter({
      name: 'gatehouse_limit_slots_lost_total',
      help: 'Slots of running calls that Redis had lost and that were taken again.',
      registers,
    }),
    limitsRefused: new Counter({
      name: 'gatehouse_limits_refused_total',
      help: 'Calls refused because a limit was reached.',
      labelNames: ['kind', 'scope', 'metric'],
      registers,
    }),
  }
}

function creditMetrics(registers: Registry[]) {
  return {
    settlementsSpooled: new Counter({
      name: 'gatehouse_settlements_spooled_total',
      help: 'Settlements written to disk because the database did not take them.',
      registers,
    }),
    settlementsWaiting: new Gauge({
      name: 'gatehouse_settlements_waiting',
      help: 'Files of settlements that wait for the database, and settlements not even written down.',
      registers,
    }),
    settlementsWrittenOff: new Counter({
      name: 'gatehouse_settlements_written_off_total',
      help: 'Settlements that were charged less than their cost, because the balance did not cover it.',
      registers,
    }),
    settlementsEstimated: new Counter({
      name: 'gatehouse_settlements_estimated_total',
      help: 'Settlements by our own count, because the upstream said nothing believable.',
      registers,
    }),
    paymentEvents: new Counter({
      name: 'gatehouse_payment_events_total',
      help: 'Events received from the payment provider, by what became of them.',
      labelNames: ['outcome'],
      registers,
    }),
    holdsExpired: new Counter({
      name: 'gatehouse_credit_holds_expired_total',
      help: 'Calls that were never settled: their process died, and nothing is charged.',
      registers,
    }),
    ledgerDifferences: new Gauge({
      name: 'gatehouse_ledger_differences',
      help: 'Places where what is kept of credits differs from the ledger, at the last look.',
      registers,
    }),
    ledgerCheckedAt: new Gauge({
      name: 'gatehouse_ledger_checked_timestamp_seconds',
      help: 'When the whole ledger was last looked at by this process; 0 before the first time.',
      registers,
    }),
  }
}

function inferenceMetrics(registers: Registry[]) {
  return {
    catalogueIsStale: new Gauge({
      name: 'gatehouse_catalogue_stale',
      help: '1 while the model catalogue file cannot be used and the last good one is in force.',
      registers,
    }),
    upstreamAttempts: new Counter({
      name: 'gatehouse_upstream_attempts_total',
      help: 'Calls to upstreams, retries too, by how they went.',
      labelNames: ['upstream', 'outcome'],
      registers,
    }),
    firstTokenSeconds: new Histogram({
      name: 'gatehouse_first_token_seconds',
      help: 'Time from the request to the first piece of its answer.',
      labelNames: ['upstream'],
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    streamsOpen: new Gauge({
      name: 'gatehouse_streams_open',
      help: 'Streamed answers that are being written.',
      registers,
    }),
  }
}

export type Metrics = ReturnType<typeof createMetrics>
