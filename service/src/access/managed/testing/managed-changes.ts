import {
  createAdminApiKey,
  createProjectApiKey,
  deleteAdminApiKey,
  deleteProjectApiKey,
  updateProjectApiKey,
} from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createExport,
  deleteExport,
  replayExport,
  requeueExportDeadLetters,
  updateExport,
} from '@gatehouse/contract/exports/export-sink'
import { createMember, deleteMember, updateMember } from '@gatehouse/contract/members/member'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  publishPolicy,
  restorePolicyVersion,
  resumePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { replacePolicyExamples } from '@gatehouse/contract/policy-evaluation'
import {
  listGatewayHistory,
  restoreGatewayRevision,
  saveGatewayConfig,
  simulateGateway,
} from '@gatehouse/contract/policy-gateway/gateway'
import {
  createGuardrail,
  deleteGuardrail,
  updateGuardrail,
} from '@gatehouse/contract/policy-gateway/guardrails'
import { archiveProject, createProject, updateProject } from '@gatehouse/contract/project'

import type { ManagedTable } from '#access/managed/managed-store.ts'
import type { createTestApi } from '#testing/test-api.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>
export type Sent = NonNullable<Parameters<Api['send']>[1]>
type Send = (endpoint: Endpoint, sent?: Sent) => Promise<Awaited<ReturnType<Api['send']>>['body']>

/** A request that changes the object, and succeeds for the set that manages it. */
export type ManagedChange = {
  endpoint: Endpoint
  table: ManagedTable
  /** Makes the object, as the set that is to manage it, in an organization that has nothing else. */
  make(send: Send): Promise<{ id: string; sent: Sent }>
}

export const target = {
  url: 'https://guard.example.com/check',
  endpoint: 'https://hooks.example.com',
  secret: `whsec_${Buffer.alloc(24).toString('base64')}`,
}

const policy = async (send: Send, moves: readonly Endpoint[] = []) => {
  const { id } = await send(createPolicy, { body: { name: 'House', rule: 'cel: true' } })
  const params = { policy_id: id }
  for (const [index, move] of moves.entries())
    await send(move, { params, body: { revision: index + 1 } })
  return { id, params, revision: moves.length + 1 }
}

const policyChange = (
  endpoint: Endpoint,
  moves: readonly Endpoint[],
  more: { params?: object; body?: object } = {},
): ManagedChange => ({
  endpoint,
  table: 'policy',
  async make(send) {
    const { id, params, revision } = await policy(send, moves)
    const isDeleted = endpoint.method === 'DELETE'
    return {
      id,
      sent: {
        params: { ...params, ...more.params },
        ...(isDeleted
          ? { query: { revision: String(revision) } }
          : { body: { revision, ...more.body } }),
      },
    }
  },
})

/** A change of an object that is in a member of the answer to its creation. */
const wrappedChange = (
  endpoint: Endpoint,
  kind: 'guardrail' | 'export',
  body?: object,
): ManagedChange => ({
  endpoint,
  table: kind === 'export' ? 'export_sink' : kind,
  async make(send) {
    const { secret, url } = target
    const made =
      kind === 'guardrail'
        ? await send(createGuardrail, { body: { name: 'House', url, secret } })
        : await send(createExport, {
            body: { type: 'webhook', config: { endpoint: target.endpoint, secret } },
          })
    const { id } = (made as unknown as Record<string, { id: string }>)[kind]!
    return { id, sent: { params: { [`${kind}_id`]: id }, ...(body && { body }) } }
  },
})

const configChange = (endpoint: Endpoint, sentBy: (historyId: string) => Sent): ManagedChange => ({
  endpoint,
  table: 'gateway_config',
  async make(send) {
    for (const name of ['First', 'Second'])
      await send(saveGatewayConfig, { body: { config: { name } } })
    const { data } = await send(listGatewayHistory)
    return { id: '', sent: sentBy(data[1]!.id) }
  },
})

const projectChange = (endpoint: Endpoint, body?: object): ManagedChange => ({
  endpoint,
  table: 'project',
  async make(send) {
    const { id } = await send(createProject, { body: { name: 'House' } })
    return { id, sent: { params: { project_id: id }, ...(body && { body }) } }
  },
})

const projectKeyChange = (endpoint: Endpoint, body?: object): ManagedChange => ({
  endpoint,
  table: 'api_key',
  async make(send) {
    const { id: project_id } = await send(createProject, { body: { name: 'House' } })
    const { id } = await send(createProjectApiKey, {
      params: { project_id },
      body: { name: 'House' },
    })
    return { id, sent: { params: { project_id, key_id: id }, ...(body && { body }) } }
  },
})

const adminKeyDeletion: ManagedChange = {
  endpoint: deleteAdminApiKey,
  table: 'api_key',
  async make(send) {
    const { id } = await send(createAdminApiKey, { body: { name: 'House', permissions: [] } })
    return { id, sent: { params: { key_id: id } } }
  },
}

export const memberChange = (endpoint: Endpoint, body?: object): ManagedChange => ({
  endpoint,
  table: 'member',
  async make(send) {
    const { id } = await send(createMember, { body: { email: 'ada@example.com', role: 'viewer' } })
    return { id, sent: { params: { member_id: id }, ...(body && { body }) } }
  },
})

/** One request for every endpoint that changes objects which a set can manage, and does not create them. */
export const managedChanges: readonly ManagedChange[] = [
  policyChange(updatePolicy, [], { body: { name: 'Home' } }),
  policyChange(replacePolicyExamples, [], { body: { examples: [] } }),
  policyChange(publishPolicy, []),
  policyChange(pausePolicy, [publishPolicy]),
  policyChange(resumePolicy, [publishPolicy, pausePolicy]),
  policyChange(restorePolicyVersion, [publishPolicy], { params: { version: '1' } }),
  policyChange(deletePolicy, []),
  configChange(saveGatewayConfig, () => ({ body: { config: { name: 'Third' } } })),
  configChange(restoreGatewayRevision, (history_id) => ({ params: { history_id } })),
  configChange(simulateGateway, () => ({ body: { persist: true } })),
  wrappedChange(updateGuardrail, 'guardrail', { name: 'Home' }),
  wrappedChange(deleteGuardrail, 'guardrail'),
  wrappedChange(updateExport, 'export', { label: 'Home' }),
  wrappedChange(deleteExport, 'export'),
  wrappedChange(replayExport, 'export', { from: '2026-01-01' }),
  wrappedChange(requeueExportDeadLetters, 'export', {}),
  projectChange(updateProject, { name: 'Home' }),
  projectChange(archiveProject),
  projectKeyChange(updateProjectApiKey, { limits: { requests_per_minute: 1 } }),
  projectKeyChange(deleteProjectApiKey),
  adminKeyDeletion,
  memberChange(updateMember, { name: 'Home' }),
  memberChange(deleteMember),
]
