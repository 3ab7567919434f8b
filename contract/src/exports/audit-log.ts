import { z } from 'zod'

import { adminEndpoint, type Endpoint } from '../endpoint.ts'
import { integerInQuery, listOf, ListQuery } from '../list.ts'
import { publicRead } from '../service-info.ts'
import { AnyId } from '../text.ts'

const Hash = z.string().regex(/^[0-9a-f]{64}$/)
const Moment = z.iso.datetime({ precision: 3 })
const OrgSeq = z.int().min(1).describe('The number of the event in its organization.')

/** An event as destinations get it. Its leaf in the tree is a hash of it. */
const AuditRecord = z
  .looseObject({
    event_id: z.uuid(),
    event_type: z.string(),
    source: z.literal('policy_gateway'),
    created_at: Moment,
    org_id: z.string(),
    org_seq: OrgSeq,
    payload: z.record(z.string(), z.unknown()).nullable().describe('null: erased.'),
    payload_hash: Hash.describe('SHA-256 of salt and payload.'),
    payload_salt: z
      .string()
      .regex(/^[0-9a-f]*$/)
      .nullable()
      .describe('Hexadecimal; null: erased with its payload.'),
  })
  .meta({ id: 'AuditRecord' })
export type AuditRecord = z.infer<typeof AuditRecord>

const LogEntry = z
  .object({ id: z.string().describe('`org_seq` as a text.'), leaf: Hash, record: AuditRecord })
  .meta({ id: 'AuditLogEntry' })
export type LogEntry = z.infer<typeof LogEntry>

const recordsMax = 1000

export const listAuditRecords = adminEndpoint({
  id: 'listAuditRecords',
  summary: 'List the audit log in the order of its numbers, for an export that can be verified',
  method: 'GET',
  path: '/v1/organization/audit_records',
  permission: 'audit.read',
  query: z.object({
    after: integerInQuery(0, 2_147_483_647)
      .default(0)
      .describe('The number of the last event of the page before; 0: from the first that is kept.'),
    limit: integerInQuery(1, recordsMax)
      .default(100)
      .describe('How many items a page has at most.'),
  }),
  response: listOf(LogEntry)
    .extend({ data: z.array(LogEntry).max(recordsMax) })
    .meta({ id: 'AuditLogEntryList' }),
  errors: [],
})

/** A signed statement that the tree of the organization has this size and this root. */
const AuditCheckpoint = z
  .object({
    id: z.string().describe('`org_seq` as a text.'),
    object: z.literal('organization.audit_checkpoint'),
    event_id: z.uuid().describe('The id under which destinations get it.'),
    event_type: z.literal('checkpoint'),
    source: z.literal('policy_gateway'),
    created_at: Moment,
    org_id: z.string(),
    org_seq: OrgSeq.describe('The size of the tree: the number of the last event that it covers.'),
    root: Hash,
    frontier: z
      .array(Hash)
      .min(1)
      .max(64)
      .describe('The roots of the complete subtrees, from the largest to the smallest.'),
    key_id: z.int().min(1),
    previous_hash: Hash.nullable().describe('SHA-256 of the previous note; null: there is none.'),
    note: z.string().describe('What was signed, with its signature, as a C2SP signed note.'),
  })
  .meta({ id: 'AuditCheckpoint' })
export type AuditCheckpoint = z.infer<typeof AuditCheckpoint>

export const listAuditCheckpoints = adminEndpoint({
  id: 'listAuditCheckpoints',
  summary: 'List the signed checkpoints of the audit log, the newest first',
  method: 'GET',
  path: '/v1/organization/audit_checkpoints',
  permission: 'audit.read',
  query: ListQuery.extend({
    after: integerInQuery(0, 2_147_483_647)
      .optional()
      .describe('A size: that of the last of the page before.'),
    order: z.enum(['asc', 'desc']).default('desc').describe('By size.'),
  }),
  response: listOf(AuditCheckpoint).meta({ id: 'AuditCheckpointList' }),
  errors: [],
})

const InclusionProof = z
  .object({
    event: AuditRecord,
    org_seq: OrgSeq,
    leaf: Hash,
    hashes: z.array(Hash).max(64).describe('The path from the leaf to the root, as in RFC 6962.'),
    checkpoint: AuditCheckpoint,
  })
  .meta({ id: 'AuditInclusionProof' })

export const readAuditProof = adminEndpoint({
  id: 'readAuditProof',
  summary: 'Prove that an event is in the audit log that a checkpoint has signed',
  method: 'GET',
  path: '/v1/organization/audit_events/:event_id/proof',
  permission: 'audit.read',
  params: z.object({ event_id: AnyId }),
  response: InclusionProof,
  errors: ['audit_event_not_found', 'proof_not_ready'],
})

const AuditKey = z
  .object({
    id: z.int().min(1),
    name: z.string().describe('In signatures.'),
    algorithm: z.literal('Ed25519'),
    public_key: z.base64(),
    verifier_key: z.string().describe('The key as tools for C2SP signed notes take it.'),
    created_at: Moment,
    retired_at: Moment.nullable().describe('null: it signs now.'),
  })
  .meta({ id: 'AuditKey' })
export type AuditKey = z.infer<typeof AuditKey>

export const readAuditKeys = {
  ...publicRead,
  id: 'readAuditKeys',
  summary: 'The public keys that checkpoints are verified with, retired ones too',
  path: '/.well-known/gatehouse-audit-keys.json',
  response: z.object({ keys: z.array(AuditKey) }).meta({ id: 'AuditKeys' }),
  errors: ['dependency_unavailable'],
} as const satisfies Endpoint
