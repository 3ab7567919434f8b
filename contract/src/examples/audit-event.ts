import type * as contract from '../exports/audit-event.ts'
import { type ExampleOf, ids } from './example.ts'

const id = '019a3e9c-7b80-7c4e-9f21-5d8e0a6b4c12'

const deleted: contract.AuditEvent = {
  id,
  event_id: id,
  event_type: 'revision',
  source: 'policy_gateway',
  created_at: '2026-11-02T09:00:00.000Z',
  org_id: ids.organization,
  action: 'deleted',
  object: 'organization.project.api_key',
  object_id: ids.projectKey,
  actor: ids.adminKey,
  request_id: ids.request,
  payload: { before: { id: ids.projectKey, name: 'Search service' }, after: null },
  payload_hash: '5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9',
}

export const auditEventExamples = {
  listAuditEvents: {
    query: { object_id: ids.projectKey, from: '2026-11-01', to: '2026-12-01' },
    answer: { object: 'list', data: [deleted], has_more: false, first_id: id, last_id: id },
  } satisfies ExampleOf<typeof contract.listAuditEvents>,
  readAuditHistogram: {
    query: {
      outcome: 'failed',
      from: '2026-11-02T09:00:00Z',
      to: '2026-11-02T11:00:00Z',
      by: 'hour',
    },
    answer: {
      object: 'organization.audit_histogram',
      by: 'hour',
      data: [
        { start: '2026-11-02T09:00:00.000Z', count: 3 },
        { start: '2026-11-02T10:00:00.000Z', count: 0 },
      ],
    },
  } satisfies ExampleOf<typeof contract.readAuditHistogram>,
}
