import {
  createAdminApiKey,
  createProjectApiKey,
  deleteAdminApiKey,
} from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { AdminKeyPermission, type Permission } from '@gatehouse/contract/permission'
import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import {
  createOrganization,
  type NewOrganization,
  runOperator,
  type Stack,
} from '@gatehouse/tools/start-stack'

const allPermissions = AdminKeyPermission.options

/** Everything the walk over all endpoints needs: credentials in every state, and things to name. */
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
  const keysWithout = new Map<Permission, ReturnType<typeof makeAdminKey>>()
  const foreign = await createOrganization(stack.service, 'Foreign Ltd')
  const suspended = await createOrganization(stack.service, 'Suspended Ltd')
  await runOperator(stack.service, ['suspend', suspended.organization_id])
  const expired = await makeAdminKey('expired', allPermissions, 1)
  const revoked = await makeAdminKey('revoked', allPermissions)
  await home.call(deleteAdminApiKey, { params: { key_id: revoked.id } })
  const victim = await makeAdminKey('somebody else', allPermissions)
  const projectKey = await home.call(createProjectApiKey, {
    params: { project_id },
    body: { name: 'somebody else' },
  })
  const policy = await home.call(createPolicy, { body: { name: 'published', rule: 'Be kind.' } })
  const params = { policy_id: policy.id }
  await home.call(publishPolicy, { params, query: {}, body: { revision: policy.revision } })
  await new Promise((resolve) => setTimeout(resolve, 1100))
  return {
    owner: { admin_key, organization_id, project_id } satisfies NewOrganization,
    foreign,
    projectKey: project_key,
    suspendedKey: suspended.admin_key,
    expiredKey: expired.value,
    revokedKey: revoked.value,
    emptyKey: (await makeAdminKey('empty', [])).value,
    /** A key that may do everything but this; made once, because their number is limited. */
    keyWithout: async (permission: Permission) => {
      const others = allPermissions.filter((each) => each !== permission)
      const key = keysWithout.get(permission) ?? makeAdminKey(`all but ${permission}`, others)
      keysWithout.set(permission, key)
      return (await key).value
    },
    /** Path parameters that name things of the owner's organization. */
    paramsOf: (endpoint: Endpoint) =>
      paramsOf(endpoint, {
        project_id,
        policy_id: policy.id,
        version: '1',
        key_id: endpoint.path.includes('/projects/') ? projectKey.id : victim.id,
      }),
  }
}
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
