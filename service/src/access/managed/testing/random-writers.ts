import {
  createProjectApiKey,
  deleteProjectApiKey,
  updateProjectApiKey,
} from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createExport,
  deleteExport,
  replayExport,
  updateExport,
} from '@gatehouse/contract/exports/export-sink'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  publishPolicy,
  retrievePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { readGatewayConfig, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import {
  createGuardrail,
  deleteGuardrail,
  updateGuardrail,
} from '@gatehouse/contract/policy-gateway/guardrails'
import { createProject, updateProject } from '@gatehouse/contract/project'

import type { createTestApi } from '#testing/test-api.ts'

import { type Sent, target } from './managed-changes.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>
type Answer = Awaited<ReturnType<Api['send']>>

/** One request that was answered. */
export type Written = {
  endpoint: Endpoint
  set: string | null
  takesOver: boolean
  status: number
  /** Of a refusal. */
  code: string | null
  message: string
  requestId: string
  /** What the answer shows as `managed_by`; undefined if it shows no object. */
  shown: string | null | undefined
}

/** A place in which there is always an object of a kind, or none for a moment. */
type Slot = { kind: Kind; id: string | null }
type Kind = 'project' | 'key' | 'policy' | 'config' | 'sink' | 'guardrail'
type Step = { slot: Slot; set: string | null; takesOver: boolean; deed: number; name: string }
type Request = [endpoint: Endpoint, sent: Sent]

/** What the writers share: objects of every kind, few enough to be written by all of them. */
export const slotsOf = (): Slot[] =>
  (
    [
      ['project', 2],
      ['key', 3],
      ['policy', 3],
      ['config', 1],
      ['sink', 2],
      ['guardrail', 2],
    ] as const
  ).flatMap(([kind, count]) => Array.from({ length: count }, () => ({ kind, id: null })))

export function createWriters(api: Api) {
  const writes: Written[] = []
  const projectId = api.organization.projectId

  async function write({ set, takesOver }: Step, [endpoint, sent]: Request): Promise<Answer> {
    const asks = takesOver && endpoint.managed !== 'create'
    const answer = await api.send(endpoint, {
      ...sent,
      headers: { ...(set !== null && { 'x-gatehouse-set': set }) },
      ...(asks && { query: { ...sent.query, take_over: 'true' } }),
    })
    const { error } = answer.body
    writes.push({
      endpoint,
      set,
      takesOver: asks,
      status: answer.status,
      code: error?.code ?? null,
      message: error?.message ?? '',
      requestId: String(answer.headers['x-request-id']),
      shown: setIn(answer.body),
    })
    return answer
  }

  /** The request of a step: the object is made if there is none, and otherwise edited, ended or acted on. */
  async function requestOf({ slot, deed, name }: Step): Promise<Request> {
    const { kind, id } = slot
    if (id === null) return [creations[kind], creationOf(kind, name)]
    if (kind === 'policy') return policyRequest(id, deed, name)
    const params = { [`${kind === 'sink' ? 'export' : kind}_id`]: id }
    if (kind === 'key') {
      const ofKey = { params: { project_id: projectId, key_id: id } }
      const monthly_budget = { credits: 1 + Number(name.slice(1)) }
      return deed < 15
        ? [deleteProjectApiKey, ofKey]
        : [updateProjectApiKey, { ...ofKey, body: { monthly_budget } }]
    }
    if (kind === 'config') return [saveGatewayConfig, { body: { config: { name } } }]
    if (kind === 'project') return [updateProject, { params, body: { name } }]
    if (kind === 'guardrail')
      return deed < 10
        ? [deleteGuardrail, { params }]
        : [updateGuardrail, { params, body: { name } }]
    if (deed < 10) return [deleteExport, { params }]
    return deed < 25
      ? [replayExport, { params, body: { from: '2026-01-01' } }]
      : [updateExport, { params, body: { label: name } }]
  }

  async function policyRequest(policy_id: string, deed: number, name: string): Promise<Request> {
    const params = { policy_id }
    const { revision = 1 } = (await api.send(retrievePolicy, { params })).body as {
      revision?: number
    }
    if (deed < 8) return [deletePolicy, { params, query: { revision: String(revision) } }]
    if (deed < 20) return [publishPolicy, { params, body: { revision } }]
    if (deed < 35) return [pausePolicy, { params, body: { revision } }]
    return [updatePolicy, { params, body: { revision, name } }]
  }

  const creationOf = (kind: Kind, name: string): Sent =>
    ({
      project: { body: { name } },
      key: { params: { project_id: projectId }, body: { name } },
      policy: { body: { name, rule: 'cel: true' } },
      config: { body: { config: { name } } },
      sink: {
        body: {
          type: 'webhook',
          label: name,
          config: { endpoint: target.endpoint, secret: target.secret },
        },
      },
      guardrail: { body: { name, url: target.url, secret: target.secret, enabled: false } },
    })[kind]

  async function take(step: Step) {
    const { slot } = step
    const { id } = slot
    const request = await requestOf(step)
    const answer = await write(step, request)
    if (id === null && answer.status < 300) slot.id ??= idIn(answer.body)
    const isGone = answer.status === 404 || (request[0].method === 'DELETE' && answer.status < 300)
    if (isGone && slot.id === id) slot.id = null
  }

  return { writes, take }
}

const creations: Record<Kind, Endpoint> = {
  project: createProject,
  key: createProjectApiKey,
  policy: createPolicy,
  config: saveGatewayConfig,
  sink: createExport,
  guardrail: createGuardrail,
}

type Shown = { id?: string; managed_by?: string | null }
const objectIn = (body: object): Shown => {
  const { guardrail, export: sink } = body as { guardrail?: Shown; export?: Shown }
  return guardrail ?? sink ?? (body as Shown)
}
const setIn = (body: object) => objectIn(body).managed_by
/** The configuration has no id. */
const idIn = (body: object) => objectIn(body).id ?? 'config'

export const readConfigSet = async (api: Api) => setIn((await api.send(readGatewayConfig)).body)
