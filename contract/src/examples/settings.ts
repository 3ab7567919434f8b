import type * as contract from '../organization/settings.ts'
import { type ExampleOf, ids } from './example.ts'

const settings: contract.OrganizationSettings = {
  id: ids.organization,
  object: 'organization.settings',
  name: 'Example Ltd',
  publish_requires_approval: false,
  default_key_expiry_seconds: null,
  labels: {},
  revision: 1,
}

export const settingsExamples = {
  readOrganizationSettings: {
    answer: settings,
  } satisfies ExampleOf<typeof contract.readOrganizationSettings>,
  updateOrganizationSettings: {
    body: { default_key_expiry_seconds: 86_400 * 90, labels: { cost_center: '4711' } },
    answer: {
      ...settings,
      default_key_expiry_seconds: 86_400 * 90,
      labels: { cost_center: '4711' },
      revision: 2,
    },
  } satisfies ExampleOf<typeof contract.updateOrganizationSettings>,
}
