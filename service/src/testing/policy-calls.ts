import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  pausePolicy,
  type Policy,
  type PolicyCreation,
  type PolicyState,
  publishPolicy,
  retrievePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'

import { createTestApi } from './test-api.ts'

/** A rule that can be enforced: it needs nothing but the text. */
export const exactRule = 'cel: text.contains("weapon")'

type PolicyAt = { id: string; revision: number }
type Sent = Parameters<Awaited<ReturnType<typeof createTestApi>>['send']>[1]

/** The whole API, with shortcuts that create policies in a given state. */
export async function createPolicyApi(options: Parameters<typeof createTestApi>[0] = {}) {
  const api = await createTestApi(options)

  /** Calls an endpoint of a policy with the revision that was last read. */
  const send = (endpoint: Endpoint, { id, revision }: PolicyAt, sent: Sent = {}) =>
    api.send(endpoint, {
      ...sent,
      params: { policy_id: id, ...sent.params },
      ...(endpoint.body && { body: { revision, ...sent.body } }),
      ...(endpoint.method === 'DELETE' && { query: { revision: String(revision), ...sent.query } }),
    })

  /** Like `send`, but throws unless the call succeeds. */
  const change = async (endpoint: Endpoint, policy: PolicyAt, body: object = {}) =>
    policyIn(await send(endpoint, policy, { body }))

  const create = async (creation: Partial<PolicyCreation> = {}) =>
    policyIn(
      await api.send(createPolicy, { body: { name: 'Weapons', rule: exactRule, ...creation } }),
    )

  const read = async ({ id }: { id: string }) =>
    policyIn(await api.send(retrievePolicy, { params: { policy_id: id } }))

  async function createIn(state: PolicyState, creation: Partial<PolicyCreation> = {}) {
    const mode = state === 'enforcing' ? ('enforcing' as const) : ('monitoring' as const)
    const draft = await create({ mode, ...creation })
    if (state === 'draft') return draft
    const published = await change(publishPolicy, draft)
    return state === 'paused' ? change(pausePolicy, published) : published
  }

  /** Edits the rule, so that there is something to publish, and publishes it. */
  const publishNext = async (policy: PolicyAt, rule: string) =>
    change(publishPolicy, await change(updatePolicy, policy, { rule }))

  return { api, send, change, create, createIn, read, publishNext }
}

function policyIn({ status, body }: { status: number; body: unknown }): Policy {
  if (status > 201) throw new Error(`answered ${status}: ${JSON.stringify(body)}`)
  return body as Policy
}
