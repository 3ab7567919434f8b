import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

import { auditMetrics, exportMetrics } from './metrics/audit-metrics.ts'
import { backgroundMetrics } from './metrics/background-metrics.ts'
import {
  guardrailMetrics,
  judgeMetrics,
  moderationMetrics,
  replacementMetrics,
} from './metrics/moderation-metrics.ts'
import { signInMetrics } from './metrics/sign-in-metrics.ts'
import { usageMetrics } from './metrics/usage-metrics.ts'

/**
 * All metrics. The unit stands last in a name; organizations are never labels. `aggregator` says what the values of several
 * processes mean together, where it is not their sum: processes share their folder and the configuration.
 */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    ...changeMetrics(registers),
    ...limitMetrics(registers),
    ...inferenceMetrics(registers),
    ...usageMetrics(registers),
    ...creditMetrics(registers),
    ...auditMetrics(registers),
    ...exportMetrics(registers),
    ...backgroundMetrics(registers),
    ...moderationMetrics(registers),
    ...judgeMetrics(registers),
    ...guardrailMetrics(registers),
    ...replacementMetrics(registers),
    ...signInMetrics(registers),
    ...machineMetrics(registers),
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
    requestsShed: new Counter({
      name: 'gatehouse_requests_shed_total',
      help: 'Requests refused because the process was behind with its work.',
      labelNames: ['kind'],
      registers,
    }),
    keyLookups: new Counter({
      name: 'gatehouse_credential_lookups_total',
      help: 'Credential lookups, by result.',
      labelNames: ['result'],
      registers,
    }),
    guessesRefused: new Counter({
      name: 'gatehouse_credential_guesses_refused_total',
      help: 'Credentials refused without a lookup, because their sender tried too many unknown ones.',
      registers,
    }),
  }
}

/** Configuration changes and what they put in force. */
function changeMetrics(registers: Registry[]) {
  return {
    changesPolledAt: new Gauge({
      name: 'gatehouse_changes_polled_timestamp_seconds',
      help: 'When the last successful poll for configuration changes began.',
      aggregator: 'min',
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
      aggregator: 'max',
      registers,
    }),
    policyFailures: new Gauge({
      name: 'gatehouse_policy_apply_failures',
      help: 'Organizations whose newest policies could not be put in force in this process, and enforcing policies that cannot be evaluated.',
      aggregator: 'max',
      registers,
    }),
    gatewayRollbacks: new Counter({
      name: 'gatehouse_gateway_rollbacks_total',
      help: 'Configurations of the policy gateway that were rolled back, because they refused too much.',
      registers,
    }),
    glassBroken: new Counter({
      name: 'gatehouse_glass_broken_total',
      help: 'Changes that an owner put in force without the approval of another member.',
      registers,
    }),
    hintsLost: new Counter({
      name: 'gatehouse_change_hints_lost_total',
      help: 'Change hints that could not be sent to Redis; the poll finds the changes anyway.',
      registers,
    }),
  }
}

function limitMetrics(registers: Registry[]) {
  return {
    limitsAreLocal: new Gauge({
      name: 'gatehouse_limits_local',
      help: '1 while this process enforces its own share of the limits, because Redis is unreachable.',
      aggregator: 'max',
      labelNames: ['kind'],
      registers,
    }),
    limitsFileIsStale: new Gauge({
      name: 'gatehouse_limits_file_stale',
      help: '1 while LIMITS_FILE is invalid and its last valid contents stay in use.',
      aggregator: 'max',
      registers,
    }),
    limitSlotsLost: new Counter({
      name: 'gatehouse_limit_slots_lost_total',
      help: 'Slots of running calls that Redis had lost and that were acquired again.',
      registers,
    }),
    budgetAlerts: new Counter({
      name: 'gatehouse_budget_alerts_total',
      help: 'Alerts written because a share of a monthly budget was used.',
      labelNames: ['scope'],
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
      help: 'Settlements written to disk, because they could not be written to the database.',
      registers,
    }),
    settlementsWaiting: new Gauge({
      name: 'gatehouse_settlements_waiting',
      help: 'Settlement files on disk that wait for the database, plus settlements that are only in memory.',
      aggregator: 'max',
      registers,
    }),
    settlementsWrittenOff: new Counter({
      name: 'gatehouse_settlements_written_off_total',
      help: 'Settlements that were charged less than their cost, because the balance did not cover it.',
      registers,
    }),
    settlementsEstimated: new Counter({
      name: 'gatehouse_settlements_estimated_total',
      help: 'Settlements by our own token count, because the upstream reported no plausible usage.',
      registers,
    }),
    paymentEvents: new Counter({
      name: 'gatehouse_payment_events_total',
      help: 'Events received from the payment provider, by outcome.',
      labelNames: ['outcome'],
      registers,
    }),
    holdsExpired: new Counter({
      name: 'gatehouse_credit_holds_expired_total',
      help: 'Holds that expired without a settlement, because their process died; nothing is charged.',
      registers,
    }),
    ledgerDifferences: new Gauge({
      name: 'gatehouse_ledger_differences',
      help: 'Balances and charges that differed from the ledger at the last check.',
      aggregator: 'max',
      registers,
    }),
    ledgerCheckedAt: new Gauge({
      name: 'gatehouse_ledger_checked_timestamp_seconds',
      help: 'When this process last compared the balances of all organizations with the ledger, and had checked all entries since the check before; 0 before the first check.',
      aggregator: 'max',
      registers,
    }),
  }
}

function inferenceMetrics(registers: Registry[]) {
  return {
    catalogueIsStale: new Gauge({
      name: 'gatehouse_catalogue_stale',
      help: '1 while the model catalogue file is invalid and the last valid one stays in use.',
      aggregator: 'max',
      registers,
    }),
    upstreamAttempts: new Counter({
      name: 'gatehouse_upstream_attempts_total',
      help: 'Calls to upstreams, retries included, by outcome.',
      labelNames: ['upstream', 'outcome'],
      registers,
    }),
    firstTokenSeconds: new Histogram({
      name: 'gatehouse_first_token_seconds',
      help: 'Time from the request to the first chunk of its answer; of a plain answer, to all of it.',
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

/** The disk and the output of this process. */
function machineMetrics(registers: Registry[]) {
  return {
    stateDirectoryUnusable: new Gauge({
      name: 'gatehouse_state_directory_unusable',
      help: '1 while STATE_DIRECTORY cannot be written, or belongs to another database; the process is not ready then.',
      aggregator: 'max',
      registers,
    }),
    logDropped: new Counter({
      name: 'gatehouse_log_lines_dropped_total',
      help: 'Log lines that were dropped because standard output is not read fast enough.',
      registers,
    }),
  }
}
