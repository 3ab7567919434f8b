import type * as contract from '../exports/export-sink.ts'
import { type ExampleOf, ids } from './example.ts'

const sink: contract.ExportSink = {
  id: ids.export,
  object: 'policy_gateway.export',
  type: 'splunk_hec',
  label: 'Security team',
  enabled: true,
  config: {
    endpoint: 'https://splunk.example.com:8088',
    token: '********',
    sourcetype: 'policy_gateway_audit',
    source: 'policy-gateway',
    ack: false,
    verify_tls: true,
  },
  managed_by: null,
  created_at: '2026-11-02T09:00:00Z',
  updated_at: '2026-11-02T09:00:00Z',
  last_success_at: null,
  last_error_at: null,
  last_error: null,
  state: 'ok',
  lag_seconds: 0,
  pending_events: 0,
  dead_letters: 0,
}
const delivering: contract.ExportSink = {
  ...sink,
  last_success_at: '2026-11-02T10:59:58Z',
  lag_seconds: 2,
  pending_events: 3,
  dead_letters: 1,
}
const deadLetter: contract.DeadLetter = {
  id: ids.event,
  object: 'policy_gateway.export.dead_letter',
  event_id: ids.event,
  org_seq: 4711,
  error: 'The destination answered 400: Incorrect index',
  attempts: 2,
  created_at: '2026-11-02T10:30:00Z',
}
const params = { export_id: ids.export }

export const exportSinkExamples = {
  listExports: {
    query: { limit: '20' },
    answer: {
      object: 'list',
      data: [delivering],
      has_more: false,
      first_id: ids.export,
      last_id: ids.export,
    },
  } satisfies ExampleOf<typeof contract.listExports>,
  createExport: {
    body: {
      type: 'splunk_hec',
      label: sink.label,
      config: {
        endpoint: 'https://splunk.example.com:8088',
        token: '11111111-2222-3333-4444-555555555555',
      },
    },
    answer: { export: sink },
  } satisfies ExampleOf<typeof contract.createExport>,
  retrieveExport: {
    params,
    answer: { export: delivering },
  } satisfies ExampleOf<typeof contract.retrieveExport>,
  updateExport: {
    params,
    body: { config: { index: 'gateway' } },
    answer: { export: { ...delivering, config: { ...sink.config, index: 'gateway' } } },
  } satisfies ExampleOf<typeof contract.updateExport>,
  deleteExport: {
    params,
    answer: { id: ids.export, object: 'policy_gateway.export.deleted', deleted: true },
  } satisfies ExampleOf<typeof contract.deleteExport>,
  testExport: {
    params,
    answer: { delivered: false, error: 'The host name could not be resolved.', duration_ms: 12 },
  } satisfies ExampleOf<typeof contract.testExport>,
  replayExport: {
    params,
    body: { from: '2026-11-01', to: '2026-11-02T09:00:00Z' },
    answer: { replay: { from_seq: 4001, to_seq: 4712, events: 712 } },
  } satisfies ExampleOf<typeof contract.replayExport>,
  listExportDeadLetters: {
    params,
    query: { limit: '20' },
    answer: {
      object: 'list',
      data: [deadLetter],
      has_more: false,
      first_id: ids.event,
      last_id: ids.event,
    },
  } satisfies ExampleOf<typeof contract.listExportDeadLetters>,
  requeueExportDeadLetters: {
    params,
    body: { event_ids: [ids.event] },
    answer: { requeued: 1 },
  } satisfies ExampleOf<typeof contract.requeueExportDeadLetters>,
}
