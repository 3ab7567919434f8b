import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { Revision } from '../revision.ts'
import { idOf, trimmedText } from '../text.ts'
import { glassBody } from '../two-persons/break-glass.ts'
import { ifMatchOf } from './if-match.ts'
import { LabelsEdit, OwnLabels } from './labels.ts'

const Seconds = z.int().min(1).max(315_360_000)

const OrganizationSettings = z
  .object({
    id: idOf('org'),
    object: z.literal('organization.settings'),
    name: z.string(),
    publish_requires_approval: z
      .boolean()
      .describe('Whether a second person has to approve what is published.'),
    default_key_expiry_seconds: Seconds.nullable().describe(
      'How long new keys work that are made without an expiry. null: until they are revoked.',
    ),
    labels: OwnLabels,
    revision: Revision.describe('Rises by one with every change.'),
  })
  .meta({ id: 'OrganizationSettings' })
export type OrganizationSettings = z.infer<typeof OrganizationSettings>

/** Absent keeps the value, and so does null, except that of `default_key_expiry_seconds`. */
const OrganizationSettingsEdit = glassBody({
  name: trimmedText(1, 80).nullish(),
  publish_requires_approval: z
    .boolean()
    .nullish()
    .describe(
      'true needs two active members who may publish; false, where it is true, needs a proposal.',
    ),
  default_key_expiry_seconds: Seconds.nullish().describe(
    'For new keys, not for those that there are. null removes it; absent keeps it.',
  ),
  labels: LabelsEdit,
}).meta({ id: 'OrganizationSettingsEdit' })
export type OrganizationSettingsEdit = z.output<typeof OrganizationSettingsEdit>

const path = '/v1/organization/settings'

export const readOrganizationSettings = adminEndpoint({
  id: 'readOrganizationSettings',
  summary: 'Read what the organization has decided about itself',
  method: 'GET',
  path,
  permission: 'projects.read',
  response: OrganizationSettings,
  etag: 'revision',
  errors: [],
})

export const updateOrganizationSettings = adminEndpoint({
  id: 'updateOrganizationSettings',
  summary: 'Change the name, the labels and the rules of the organization',
  method: 'PATCH',
  path,
  permission: 'admin_api_keys.write',
  headers: ifMatchOf('settings'),
  body: OrganizationSettingsEdit,
  response: OrganizationSettings,
  etag: 'revision',
  errors: ['revision_conflict', 'limit_reached', 'approval_required'],
})
