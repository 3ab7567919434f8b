import type pg from 'pg'
import { expect } from 'vitest'

/** Everything the database holds about a policy, its events and its stored answers, read in one statement. */
export type Recorded = {
  policy: {
    revision: number
    current_version: number
    state: string
    mode: string
    draft_sha256: string
    published_sha256: string
  }
  policy_epoch: number
  versions: { version: number; sha256: string; mode: string }[]
  events: { xid: string; kind: string; header: object; payload: object; is_intact: boolean }[]
  epochs: { xid: string; epoch: number; version: number }[]
  changes: { xid: string; kind: string }[]
  answers: { key: string; status: number | null; has_answer: boolean }[]
}

const text = `
  select
    jsonb_build_object('revision', revision, 'current_version', current_version,
      'state', state, 'mode', mode, 'draft_sha256', encode(draft_sha256, 'hex'),
      'published_sha256', encode(published_sha256, 'hex')) as policy,
    organization.policy_epoch::integer as policy_epoch,
    array(select jsonb_build_object('version', version, 'sha256', encode(sha256, 'hex'), 'mode', mode)
      from policy_version where policy_id = policy.id order by version) as versions,
    array(select jsonb_build_object('xid', xid::text, 'kind', kind, 'header', header,
        'payload', convert_from(payload, 'UTF8')::jsonb,
        'is_intact', payload_hash = sha256(salt || payload))
      from event where header ->> 'object_id' = policy.id order by seq) as events,
    array(select jsonb_build_object('xid', xid::text, 'epoch', epoch, 'version', version)
      from policy_epoch where policy_id = policy.id order by epoch) as epochs,
    array(select jsonb_build_object('xid', xid::text, 'kind', kind)
      from config_change where object_id = policy.id order by seq) as changes,
    array(select jsonb_build_object('key', key, 'status', status, 'has_answer', answer is not null)
      from idempotency_key order by created_at, key) as answers
  from policy join organization on organization.id = policy.organization_id
  where policy.id = $1`

export async function recordsOf(database: pg.Client, policyId: string): Promise<Recorded> {
  const { rows } = await database.query<Recorded>(text, [policyId])
  if (!rows[0]) throw new Error('The policy does not exist.')
  return rows[0]
}

/** Expects exactly one publish of a policy that is in force and has the maximum number of versions. */
export function expectPublished(before: Recorded, after: Recorded, key: string | undefined) {
  const { policy } = before
  const sha256 = policy.draft_sha256
  const version = policy.current_version + 1
  const revision = policy.revision + 1
  const epoch = before.policy_epoch + 1
  // One transaction must have written all of the rows.
  const xid = after.epochs.at(-1)?.xid
  const event = {
    xid,
    kind: 'revision',
    is_intact: true,
    header: expect.objectContaining({ action: 'published', revision, version }) as unknown,
    payload: {
      before: expect.objectContaining({ revision: policy.revision }) as unknown,
      after: expect.objectContaining({
        revision,
        current_version: version,
        state: policy.mode,
        published: expect.objectContaining({ version, sha256 }) as unknown,
      }) as unknown,
    },
  }
  const published = { revision, current_version: version, published_sha256: sha256 }
  expect(after).toEqual({
    policy: { ...policy, ...published, state: policy.mode },
    policy_epoch: epoch,
    versions: [...before.versions.slice(1), { version, sha256, mode: policy.mode }],
    events: [...before.events, event],
    epochs: [...before.epochs, { xid, epoch, version }],
    changes: [...before.changes, { xid, kind: 'policy' }],
    answers: [...before.answers, ...(key ? [{ key, status: 200, has_answer: true }] : [])],
  })
}
