import { Counter, Gauge, type Registry } from 'prom-client'

/** Audit events on their way from calls to the log. */
export const auditMetrics = (registers: Registry[]) => ({
  eventsSpooled: new Counter({
    name: 'gatehouse_events_spooled_total',
    help: 'Audit events written to disk, because they could not be written to the database.',
    registers,
  }),
  eventsWaiting: new Gauge({
    name: 'gatehouse_events_waiting',
    help: 'Files of audit events on disk that wait for the database, plus events that are only in memory.',
    aggregator: 'max',
    registers,
  }),
  auditEventsNumbered: new Counter({
    name: 'gatehouse_audit_events_numbered_total',
    help: 'Audit events that the worker has given a number in their organization.',
    registers,
  }),
  auditShardsFailing: new Gauge({
    name: 'gatehouse_audit_shards_failing',
    help: 'Shards, of 16, whose audit events get no numbers because an event or a head among them is damaged.',
    aggregator: 'max',
    registers,
  }),
  auditNumberingStopped: new Gauge({
    name: 'gatehouse_audit_numbering_stopped',
    help: '1 after the database was moved to another server, until the operator lets the numbering of audit events go on.',
    aggregator: 'max',
    registers,
  }),
  auditCheckpoints: new Counter({
    name: 'gatehouse_audit_checkpoints_total',
    help: 'Checkpoints of the audit log that the worker has signed.',
    registers,
  }),
})

/** Audit events on their way from the log to export sinks. */
export const exportMetrics = (registers: Registry[]) => ({
  exportBatches: new Counter({
    name: 'gatehouse_export_batches_total',
    help: 'Batches of audit events that were sent to export sinks, by type and outcome.',
    labelNames: ['type', 'outcome'],
    registers,
  }),
  exportEvents: new Counter({
    name: 'gatehouse_export_events_total',
    help: 'Audit events and checkpoints that export sinks have acknowledged, by type.',
    labelNames: ['type'],
    registers,
  }),
  exportSinks: new Gauge({
    name: 'gatehouse_export_sinks',
    help: 'Enabled export sinks that fail, by state: error needs an administrator, retrying may pass.',
    aggregator: 'max',
    labelNames: ['state'],
    registers,
  }),
  exportPending: new Gauge({
    name: 'gatehouse_export_pending_events',
    help: 'Audit events that enabled export sinks have not got yet, counted once for each sink.',
    aggregator: 'max',
    registers,
  }),
  exportLagSeconds: new Gauge({
    name: 'gatehouse_export_lag_seconds',
    help: 'Age of the oldest audit event that an enabled export sink has not got yet.',
    aggregator: 'max',
    registers,
  }),
})
