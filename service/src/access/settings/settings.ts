import type {
  OrganizationSettings,
  OrganizationSettingsEdit,
} from '@gatehouse/contract/organization/settings'
import { revisionMax } from '@gatehouse/contract/revision'

import { areSameLabels, editLabels, readLabels } from '#access/labels/labels.ts'
import type { OrganizationRow } from '#access/organizations/organization-store.ts'
import { ApiError } from '#platform/api-error.ts'

// What an organization has decided about itself, which stands in its row.

/** Of the organization of a credential, which exists. */
export function presentSettings(row: OrganizationRow | undefined): OrganizationSettings {
  if (!row) throw new Error('the organization of a credential does not exist')
  return {
    id: row.id,
    object: 'organization.settings',
    name: row.name,
    publish_requires_approval: row.publish_requires_approval,
    default_key_expiry_seconds: row.default_key_expiry_seconds,
    labels: readLabels(row.labels),
    revision: row.settings_revision,
  }
}

/** The settings after a change: the same object if nothing of them changes, otherwise of the next revision. */
export function editSettings(
  before: OrganizationSettings,
  edit: OrganizationSettingsEdit,
): OrganizationSettings {
  const { default_key_expiry_seconds: expiry } = edit
  const after = {
    ...before,
    name: edit.name ?? before.name,
    publish_requires_approval: edit.publish_requires_approval ?? before.publish_requires_approval,
    default_key_expiry_seconds: expiry === undefined ? before.default_key_expiry_seconds : expiry,
    labels: editLabels(before.labels, edit.labels),
  }
  const isSame =
    after.name === before.name &&
    after.publish_requires_approval === before.publish_requires_approval &&
    after.default_key_expiry_seconds === before.default_key_expiry_seconds &&
    areSameLabels(after.labels, before.labels)
  if (isSame) return before
  if (before.revision >= revisionMax) {
    throw new ApiError('limit_reached', 'The settings cannot have more revisions.')
  }
  return { ...after, revision: before.revision + 1 }
}
