import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect } from 'vitest'

import type { createTestApi } from '#testing/test-api.ts'

/** The enforcing policies of the organization, by what they need. */
const drafts = {
  exact: { rule: 'cel: text.contains("forbidden")', direction: 'request' },
  'exact, answers': { rule: 'cel: text.contains("unsayable")', direction: 'response' },
  scored: { rule: 'cel: score("hate") > 0.5', direction: 'request' },
  'scored, answers': { rule: 'cel: score("hate") > 0.5', direction: 'response' },
  plain: { rule: 'Be kind to everyone.', direction: 'request' },
  'plain, answers': { rule: 'Answer politely.', direction: 'response' },
} as const
export type DraftName = keyof typeof drafts

type Api = Awaited<ReturnType<typeof createTestApi>>

/** Publishes every policy; returns their ids. */
export async function publishAll({ send, house, organization }: Api) {
  const ids: Partial<Record<DraftName, string>> = {}
  for (const [name, draft] of Object.entries(drafts)) {
    const body = { name, scope: 'organization', mode: 'enforcing', ...draft }
    const created = await send(createPolicy, { body })
    const { id } = created.body
    const published = await send(publishPolicy, {
      params: { policy_id: id },
      body: { revision: 1 },
    })
    expect(published.status).toBe(200)
    ids[name as DraftName] = id
  }
  const { inForce } = house.policies
  const count = Object.keys(drafts).length
  await waitUntil(() => inForce.get(organization.organizationId)?.policies.length === count)
  return ids as Record<DraftName, string>
}
