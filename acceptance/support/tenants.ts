import {
  createAdminApiKey,
  createProjectApiKey,
  deleteAdminApiKey,
  deleteProjectApiKey,
} from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { createExport } from '@gatehouse/contract/exports/export-sink'
import { createMember } from '@gatehouse/contract/members/member'
import {
  AdminKeyPermission,
  type Permission,
  ProjectKeyPermission,
} from '@gatehouse/contract/permission'
import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { listGatewayHistory, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { createGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import { createGatewayProposal } from '@gatehouse/contract/policy-gateway/proposals'
import {
  createOrganization,
  createTenants,
  type NewOrganization,
  runOperator,
  type Stack,
} from '@gatehouse/tools/start-stack'

const webhook = {
  endpoint: 'https://hooks.example.com',
  secret: `whsec_${Buffer.alloc(24, 1).toString('base64')}`,
}

const allPermissions = AdminKeyPermission.options
const allOfProjects = ProjectKeyPermission.options

/** Creates what the tests of all endpoints need: credentials in every state, and ids for path parameters. */
export async function prepareTenants(stack: Stack) {
  const {
    base_url: baseUrl,
    admin_key,
    organization_id,
    project_id,
    project_key,
  } = stack.description
  const home = createClient({ baseUrl, credential: admin_key })
  const makeAdminKey = (name: string, permissions: readonly Permission[], seconds?: number) =>
    home.call(createAdminApiKey, {
      body: {
        name,
        permissions: permissions as never,
        ...(seconds && { expires_in_seconds: seconds }),
      },
    })
  const makeProjectKey = (name: string, permissions: readonly Permission[], seconds?: number) =>
    home.call(createProjectApiKey, {
      params: { project_id },
      body: {
        name,
        permissions: permissions as never,
        ...(seconds && { expires_in_seconds: seconds }),
      },
    })
  const keysWithout = new Map<string, Promise<{ value: string }>>()
  const foreign = await createOrganization(stack.service, 'Foreign Ltd')
  const suspended = await createOrganization(stack.service, 'Suspended Ltd')
  const suspendedCaller = await createClient({ baseUrl, credential: suspended.admin_key }).call(
    createProjectApiKey,
    { params: { project_id: suspended.project_id }, body: { name: 'suspended' } },
  )
  await runOperator(stack.service, ['suspend', suspended.organization_id])
  const expired = await makeAdminKey('expired', allPermissions, 1)
  const revoked = await makeAdminKey('revoked', allPermissions)
  await home.call(deleteAdminApiKey, { params: { key_id: revoked.id } })
  const callers = await prepareCallers()
  const victim = await makeAdminKey('another key', allPermissions)
  const projectKey = await home.call(createProjectApiKey, {
    params: { project_id },
    body: { name: 'another key' },
  })
  const policy = await home.call(createPolicy, { body: { name: 'published', rule: 'Be kind.' } })
  const params = { policy_id: policy.id }
  await home.call(publishPolicy, { params, query: {}, body: { revision: policy.revision } })
  await home.call(saveGatewayConfig, { body: { config: { owner: organization_id } } })
  const history = await home.call(listGatewayHistory, { query: {} })
  const events = await home.call(listAuditEvents, { query: {} })
  const { export: sink } = await home.call(createExport, {
    body: { type: 'webhook', enabled: false, config: webhook },
  })
  const { guardrail } = await home.call(createGuardrail, {
    body: { name: 'guardrail', url: webhook.endpoint, secret: webhook.secret, enabled: false },
  })
  const { proposal } = await home.call(createGatewayProposal, {
    query: {},
    body: { config: { name: 'proposal' } },
  })
  const member = await home.call(createMember, {
    body: { email: 'ada@example.com', role: 'viewer' },
  })
  await new Promise((resolve) => setTimeout(resolve, 1100))
  const administrators = {
    working: admin_key,
    expired: expired.value,
    revoked: revoked.value,
    empty: (await makeAdminKey('empty', [])).value,
    suspended: suspended.admin_key,
    foreign: foreign.admin_key,
  }
  /** Project keys in the same states. */
  async function prepareCallers() {
    const gone = await makeProjectKey('revoked', allOfProjects)
    await home.call(deleteProjectApiKey, { params: { project_id, key_id: gone.id } })
    const [stranger] = await createTenants(stack.service, 1)
    return {
      working: (await makeProjectKey('working', allOfProjects)).value,
      expired: (await makeProjectKey('expired', allOfProjects, 1)).value,
      revoked: gone.value,
      empty: (await makeProjectKey('empty', [])).value,
      suspended: suspendedCaller.value,
      foreign: stranger?.project_key ?? '',
    }
  }

  return {
    owner: { admin_key, organization_id, project_id } satisfies NewOrganization,
    projectKey: project_key,
    /** Keys of the kind that the endpoint accepts, in every state. */
    keysFor: (endpoint: Endpoint) => (takesAdminKeys(endpoint) ? administrators : callers),
    /** A key with every permission except some. Created once, because the number of keys is limited. */
    keyWithout: async (
      endpoint: Endpoint,
      lacking: readonly (Endpoint['permission'] | undefined)[],
    ) => {
      const isCaller = !takesAdminKeys(endpoint)
      const all: readonly Permission[] = isCaller ? allOfProjects : allPermissions
      const others = all.filter((each) => !lacking.includes(each))
      const make = isCaller ? makeProjectKey : makeAdminKey
      const name = `all but ${lacking.filter(Boolean).join()}${isCaller ? ', project key' : ''}`
      const key = keysWithout.get(name) ?? make(name, others)
      keysWithout.set(name, key)
      return (await key).value
    },
    /** Path parameters with ids of the owner's organization. */
    paramsOf: (endpoint: Endpoint) =>
      paramsOf(endpoint, {
        project_id,
        policy_id: policy.id,
        version: '1',
        history_id: history.data[0]?.id ?? '',
        event_id: events.data[0]?.id ?? '',
        export_id: sink.id,
        guardrail_id: guardrail.id,
        approval_id: 'apr_06f8q3k2r5s7t9v1w3x5y7q5',
        proposal_id: proposal.id,
        session_id: 'ses_06f8q3k2r5s7t9v1w3x5y7r6',
        member_id: member.id,
        model_id: 'chat-scripted',
        key_id: endpoint.path.includes('/projects/') ? projectKey.id : victim.id,
      }),
  }
}
/** Where both kinds of keys are taken, administrators may do more. */
export const takesAdminKeys = ({ credentials }: Endpoint) =>
  credentials.some((kind) => kind === 'admin_key')

export type Tenants = Awaited<ReturnType<typeof prepareTenants>>

function paramsOf(endpoint: Endpoint, known: Record<string, string>): Record<string, string> {
  const names = Object.keys(endpoint.params?.shape ?? {})
  return Object.fromEntries(
    names.map((name) => {
      const id = known[name]
      if (!id) throw new Error(`Add an example for the path parameter :${name} to tenants.ts.`)
      return [name, id]
    }),
  )
}
