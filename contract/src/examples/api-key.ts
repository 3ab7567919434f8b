import type * as contract from '../api-key.ts'
import { type ExampleOf, ids, morning } from './example.ts'

const owner = { id: ids.organization, type: 'organization' } as const

const adminKey: contract.AdminApiKey = {
  id: ids.adminKey,
  object: 'organization.admin_api_key',
  name: 'Deployment pipeline',
  redacted_value: 'gate_adm_Zz...RU98',
  created_at: morning,
  expires_at: morning + 86_400 * 90,
  owner,
  permissions: ['policies.read', 'policies.write'],
  managed_by: null,
}

const projectKey: contract.ProjectApiKey = {
  id: ids.projectKey,
  object: 'organization.project.api_key',
  name: 'Web server',
  redacted_value: 'gate_prj_Ab...Yz09',
  created_at: morning,
  owner,
  permissions: ['model.invoke', 'credits.read'],
  limits: null,
  monthly_budget: null,
  allowed_models: null,
  managed_by: null,
}

/** Built, so that no scanner takes the example for a leaked key. Its checksum is wrong. */
const secret = (prefix: 'adm' | 'prj', first: string, last: string) =>
  `gate_${prefix}_${first}${'x'.repeat(43)}${last}`

const params = { project_id: ids.project }
const page = { object: 'list', has_more: false } as const

export const apiKeyExamples = {
  listAdminApiKeys: {
    query: { limit: '20' },
    answer: { ...page, data: [adminKey], first_id: ids.adminKey, last_id: ids.adminKey },
  } satisfies ExampleOf<typeof contract.listAdminApiKeys>,
  createAdminApiKey: {
    body: {
      name: adminKey.name,
      permissions: ['policies.read', 'policies.write'],
      expires_in_seconds: 86_400 * 90,
    },
    answer: { ...adminKey, value: secret('adm', 'Zz', 'RU98') },
  } satisfies ExampleOf<typeof contract.createAdminApiKey>,
  deleteAdminApiKey: {
    params: { key_id: ids.adminKey },
    answer: { id: ids.adminKey, object: 'organization.admin_api_key.deleted', deleted: true },
  } satisfies ExampleOf<typeof contract.deleteAdminApiKey>,
  listProjectApiKeys: {
    params,
    query: { limit: '20' },
    answer: { ...page, data: [projectKey], first_id: ids.projectKey, last_id: ids.projectKey },
  } satisfies ExampleOf<typeof contract.listProjectApiKeys>,
  createProjectApiKey: {
    params,
    body: { name: projectKey.name, permissions: ['model.invoke', 'credits.read'] },
    answer: { ...projectKey, value: secret('prj', 'Ab', 'Yz09') },
  } satisfies ExampleOf<typeof contract.createProjectApiKey>,
  updateProjectApiKey: {
    params: { ...params, key_id: ids.projectKey },
    body: { limits: { requests_per_minute: 30 } },
    answer: {
      ...projectKey,
      limits: {
        requests_per_minute: 30,
        requests_per_day: null,
        tokens_per_minute: null,
        concurrent_requests: null,
      },
    },
  } satisfies ExampleOf<typeof contract.updateProjectApiKey>,
  deleteProjectApiKey: {
    params: { ...params, key_id: ids.projectKey },
    answer: { id: ids.projectKey, object: 'organization.project.api_key.deleted', deleted: true },
  } satisfies ExampleOf<typeof contract.deleteProjectApiKey>,
}
