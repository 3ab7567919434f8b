import type * as contract from '../project.ts'
import { type ExampleOf, ids, morning } from './example.ts'

const project: contract.Project = {
  id: ids.project,
  object: 'organization.project',
  name: 'Support assistant',
  status: 'active',
  created_at: morning,
  archived_at: null,
  limits: null,
  monthly_budget: null,
  allowed_models: null,
  labels: { cost_center: '4711' },
  key_defaults: null,
  managed_by: null,
}
const params = { project_id: ids.project }

export const projectExamples = {
  listProjects: {
    query: { limit: '20' },
    answer: {
      object: 'list',
      data: [project],
      has_more: false,
      first_id: ids.project,
      last_id: ids.project,
    },
  } satisfies ExampleOf<typeof contract.listProjects>,
  createProject: {
    body: { name: project.name, labels: project.labels },
    answer: project,
  } satisfies ExampleOf<typeof contract.createProject>,
  retrieveProject: {
    params,
    answer: project,
  } satisfies ExampleOf<typeof contract.retrieveProject>,
  updateProject: {
    params,
    body: { name: 'Help desk', allowed_models: ['example-large'] },
    answer: { ...project, name: 'Help desk', allowed_models: ['example-large'] },
  } satisfies ExampleOf<typeof contract.updateProject>,
  archiveProject: {
    params,
    answer: { ...project, status: 'archived', archived_at: morning + 3600 },
  } satisfies ExampleOf<typeof contract.archiveProject>,
}
