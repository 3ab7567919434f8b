import type { DestinationDouble } from '@gatehouse/tools/destinations/double'

import type {
  DestinationDeps,
  DestinationType,
  ExportItem,
  ExportRecord,
} from '#exports/destinations/destination.ts'
import { outcomeOfError } from '#exports/destinations/outcome.ts'
import type { Clock } from '#platform/clock.ts'
import { createEgress } from '#platform/egress.ts'

/** An event of a call that a policy refused, with a member of each kind. */
function createRecord(seq: number, members: Record<string, unknown> = {}): ExportRecord {
  return {
    event_id: `019a0000-0000-7000-8000-${String(seq).padStart(12, '0')}`,
    event_type: 'enforcement',
    source: 'policy_gateway',
    created_at: new Date(Date.UTC(2026, 2, 1, 10) + seq * 1001).toISOString(),
    org_id: 'org_1',
    org_seq: seq,
    phase: 'call',
    request_id: `req_${seq}`,
    project_id: null,
    model: 'model "of" {braces} \\ 日本',
    outcome: 'blocked',
    status: 403,
    decision: 'refuse',
    effective_decision: 'refuse',
    enforced: true,
    policy_id: 'pol_1',
    triggered_categories: ['a', 'b'],
    matches: [{ policy_id: 'pol_1', mode: 'enforce' }],
    score: 0.25,
    payload: { usage: { credits: seq } },
    payload_hash: 'ab'.repeat(32),
    payload_salt: 'cd'.repeat(16),
    ...members,
  }
}

const toItem = (record: ExportRecord): ExportItem => ({ record, json: JSON.stringify(record) })

export const createItems = (count: number, members?: Record<string, unknown>) =>
  Array.from({ length: count }, (_, index) => toItem(createRecord(index + 1, members)))

type Settings = { now?: Clock; signal?: AbortSignal; deadlineMs?: number }

/** Sends through a real TLS connection, which checks the certificate of the double. */
export async function sendTo<Config>(
  double: Pick<DestinationDouble, 'endpoint' | 'ca'>,
  type: DestinationType<Config>,
  [config, batch]: [config: Config, batch: readonly ExportItem[]],
  settings: Settings = {},
) {
  const { now = () => new Date('2026-03-01T12:00:00Z'), deadlineMs = 20_000 } = settings
  const signal = settings.signal ?? new AbortController().signal
  const privateTargets = [new URL(double.endpoint).host]
  await using egress = createEgress({ privateTargets, ca: [double.ca] })
  const request: DestinationDeps['request'] = (address, { tls: _, ...call }) =>
    egress.request(address, { ...call, deadlineMs, answerLimitBytes: 65_536, signal })
  return await type.send(config, batch, { request, now, signal }).catch(outcomeOfError)
}
