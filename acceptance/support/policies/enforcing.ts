import { createClient } from '@gatehouse/contract/client'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  type PolicyCreation,
  publishPolicy,
  readPolicyRollout,
  retrievePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import type { ApiProcess } from '@gatehouse/tools/service-process'
import type { NewOrganization, Stack } from '@gatehouse/tools/start-stack'
import pg from 'pg'
import { expect, onTestFinished } from 'vitest'

/** Long enough for a busy machine; how fast it happens is not checked. */
export const eventually = { timeout: 60_000, interval: 50 }

type Owner = Pick<NewOrganization, 'organization_id' | 'admin_key'>

/**
 * Puts a policy in force at every process until the end of the test. Unless the creation says otherwise it enforces, in
 * the whole organization.
 */
export async function putInForce(
  stack: Stack,
  creation: Partial<PolicyCreation>,
  owner: Owner = stack.description,
) {
  const policy = await draftPolicy(stack, creation, owner)
  await policy.publish()
  return policy
}

/** A policy that nothing enforces yet. It is deleted at the end of the test. */
export async function draftPolicy(
  stack: Stack,
  creation: Partial<PolicyCreation>,
  owner: Owner = stack.description,
) {
  const { base_url: baseUrl } = stack.description
  const client = createClient({ baseUrl, credential: owner.admin_key })
  const usual = { name: 'Kindness', rule: 'cel: true', mode: 'enforcing', scope: 'organization' }
  const body = { ...usual, ...creation } as PolicyCreation
  const { id } = await client.call(createPolicy, { body })
  const params = { policy_id: id }
  const readRevision = async () => (await client.call(retrievePolicy, { params })).revision
  const readRollout = () => client.call(readPolicyRollout, { params })
  /** The epoch of the last change, when every process has applied it. */
  const untilApplied = async () => {
    await expect.poll(readRollout, eventually).toMatchObject({ is_applied: true })
    return (await readRollout()).policy_epoch
  }
  onTestFinished(async () => {
    await client.call(deletePolicy, { params, query: { revision: String(await readRevision()) } })
    await Promise.all(stack.apis.map((api) => untilGone(api, owner, id)))
  })
  return {
    id,
    name: body.name,
    /** Publishes the draft and waits for every process; returns the epoch. */
    async publish() {
      const revision = await readRevision()
      const query = { wait: 'applied' } as const
      const { rollout } = await client.call(publishPolicy, { params, query, body: { revision } })
      if (rollout?.is_applied) return rollout.policy_epoch
      return untilApplied() // a busy machine may take longer than the call waits
    },
    /** Publishes the draft and waits for nothing. */
    async publishOnly() {
      const body = { revision: await readRevision() }
      await client.call(publishPolicy, { params, query: {}, body })
    },
    async changeRule(rule: string) {
      await client.call(updatePolicy, { params, body: { revision: await readRevision(), rule } })
    },
    /** Takes the policy out of force everywhere. */
    async pause() {
      await client.call(pausePolicy, { params, body: { revision: await readRevision() } })
      return untilApplied()
    },
  }
}

/** The policies of a process are read at its operations port, because a deleted policy has no rollout. */
async function untilGone({ metricsUrl }: ApiProcess, owner: Owner, policyId: string) {
  const url = metricsUrl.replace(/metrics$/, `policies/${owner.organization_id}`)
  const readInForce = async () => (await fetch(url)).text()
  await expect.poll(readInForce, eventually).not.toContain(policyId)
}

/** What an event says of its call; the tests compare the members that they know. */
type CallEvent = Record<string, unknown>

/** The events of one call, as PostgreSQL stores them. */
export async function readCallEvents(stack: Stack, requestId: string): Promise<CallEvent[]> {
  const client = new pg.Client({ connectionString: stack.database.url })
  await client.connect()
  try {
    const { rows } = await client.query<{ header: CallEvent }>(
      `select header from event where kind = 'enforcement' and header->>'request_id' = $1`,
      [requestId],
    )
    return rows.map(({ header }) => header)
  } finally {
    await client.end()
  }
}
