import type * as contract from '../exports/audit-log.ts'
import { type ExampleOf, ids } from './example.ts'

const eventId = '019a3e9c-7b80-7c4e-9f21-5d8e0a6b4c12'
const leaf = '7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730'
const root = '1b16b1df538ba12dc3f97edbb85caa7050d46c148134290feba80f8236c83db9'
const sibling = '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7'

const record: contract.AuditRecord = {
  event_id: eventId,
  event_type: 'revision',
  source: 'policy_gateway',
  created_at: '2026-11-02T09:00:00.000Z',
  org_id: ids.organization,
  org_seq: 2,
  action: 'deleted',
  object: 'organization.project.api_key',
  object_id: ids.projectKey,
  actor: ids.adminKey,
  request_id: ids.request,
  payload: { before: { id: ids.projectKey, name: 'Search service' }, after: null },
  payload_hash: '5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9',
  payload_salt: '9f86d081884c7d659a2feaa0c55ad015',
}

const checkpoint: contract.AuditCheckpoint = {
  id: '2',
  object: 'organization.audit_checkpoint',
  event_id: '3b0c9f5e-8d1a-8c47-9b2e-6f1d0a7c5e34',
  event_type: 'checkpoint',
  source: 'policy_gateway',
  created_at: '2026-11-02T09:00:04.120Z',
  org_id: ids.organization,
  org_seq: 2,
  root,
  frontier: [root],
  key_id: 1,
  previous_hash: null,
  note: `gatehouse-audit/${ids.organization}\n2\nGxax31OLoS3D+X7buFyqcFDUbBSBNCkP66gPgjbIPbk=\nprevious none\ntime 2026-11-02T09:00:04.120Z\n\n— gatehouse-audit-1 q83vAAIEBggKDA4QEhQWGBocHiAiJCYoKiwuMDI0Njg6PD5AQkRGSEpMTlBSVFZYWlxeYGJkZmhqbG5wcnR2eHo=\n`,
}

const page = (id: string) => ({
  object: 'list' as const,
  has_more: false,
  first_id: id,
  last_id: id,
})

export const auditLogExamples = {
  readAuditProof: {
    params: { event_id: eventId },
    answer: { event: record, org_seq: 2, leaf, hashes: [sibling], checkpoint },
  } satisfies ExampleOf<typeof contract.readAuditProof>,
  listAuditRecords: {
    query: { after: '1', limit: '1000' },
    answer: { ...page('2'), data: [{ id: '2', leaf, record }] },
  } satisfies ExampleOf<typeof contract.listAuditRecords>,
  listAuditCheckpoints: {
    query: { order: 'asc' },
    answer: { ...page('2'), data: [checkpoint] },
  } satisfies ExampleOf<typeof contract.listAuditCheckpoints>,
  readAuditKeys: {
    answer: {
      keys: [
        {
          id: 1,
          name: 'gatehouse-audit-1',
          algorithm: 'Ed25519',
          public_key: '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
          verifier_key: 'gatehouse-audit-1+b12a0c55+AddamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea',
          created_at: '2026-11-01T08:00:00.000Z',
          retired_at: null,
        },
      ],
    },
  } satisfies ExampleOf<typeof contract.readAuditKeys>,
}
