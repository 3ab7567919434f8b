import type { ExportItem, ExportRecord } from '#exports/destinations/destination.ts'

/** An event as destinations get it. */
export function createItem(orgSeq: number, members: Record<string, unknown> = {}): ExportItem {
  const record: ExportRecord = {
    event_id: `0199a000-0000-7000-8000-${String(orgSeq).padStart(12, '0')}`,
    event_type: 'enforcement',
    source: 'policy_gateway',
    created_at: '2026-03-05T23:59:59.123Z',
    org_id: 'org_1',
    org_seq: orgSeq,
    decision: 'refuse',
    triggered_categories: ['größe', 'b'],
    payload: { reason: 'a\nb' },
    payload_hash: 'ab'.repeat(32),
    payload_salt: 'cd'.repeat(16),
    ...members,
  }
  return { record, json: JSON.stringify(record) }
}

export const createCheckpoint = (size: number, members: Record<string, unknown> = {}) =>
  createItem(size, { event_type: 'checkpoint', root: 'ef'.repeat(32), note: 'a\n', ...members })
