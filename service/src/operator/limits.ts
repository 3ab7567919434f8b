import type { LimitName, LimitScope, LimitValues } from '@gatehouse/contract/limits'

import { lockProjectKey } from '#access/keys/key-store.ts'
import { presentProjectKey } from '#access/keys/present-key.ts'
import {
  findOverride,
  listOverrides,
  saveOverride,
} from '#access/limit-overrides/override-store.ts'
import { areSameLimits, editLimits } from '#access/limit-overrides/own-limits.ts'
import { findOrganization, lockOrganization } from '#access/organizations/organization-store.ts'
import { presentProject } from '#access/projects/present-project.ts'
import { lockProject } from '#access/projects/project-store.ts'
import { operator } from '#audit/event.ts'
import type { Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import type { CommandOutput, OperatorDeps } from './command.ts'
import { noOrganization } from './present.ts'

type LimitsDeps = Omit<OperatorDeps, 'secretBox' | 'openPatientDb' | 'publicUrl' | 'isWithKeys'>

/** Whose limits are meant; without a project and a key those of the organization. */
export type LimitsTarget = { organizationId: string; projectId?: string; keyId?: string }

/** null for a number returns to the tier's. */
export type OperatorEdit = Readonly<Partial<Record<LimitName, number | null>>>

const shownMax = 1000

export async function showLimits(
  organizationId: string,
  { db }: LimitsDeps,
): Promise<CommandOutput> {
  if (!(await findOrganization(db, organizationId))) throw noOrganization(organizationId)
  const rows = await listOverrides(db, organizationId, shownMax + 1)
  const data = rows.slice(0, shownMax).map(({ scope, scopeId, values }) => ({
    scope,
    id: scopeId,
    limits: values,
  }))
  const lines = data.map(({ scope, id, limits }) => `${scope}  ${id}  ${describe(limits)}`)
  const hasMore = rows.length > shownMax
  const more = hasMore ? [`Only the first ${shownMax} are shown.`] : []
  const text = [...lines, ...more].join('\n') || "Nothing was set: the tier's limits hold."
  return { result: { data, has_more: hasMore }, text: `${text}\n` }
}

/** `edit` null removes everything that was set. Repeating changes nothing. */
export async function changeOperatorLimits(
  target: LimitsTarget,
  edit: OperatorEdit | null,
  { db, announce }: LimitsDeps,
): Promise<CommandOutput> {
  const { organizationId } = target
  const { scope, scopeId } = scopeOf(target)
  const { after, isChanged } = await transact(db, async (tx) => {
    if (!(await lockOrganization(tx, organizationId))) throw noOrganization(organizationId)
    const present = await findResource(tx, target)
    const at = { organizationId, scope, scopeId }
    const before = await findOverride(tx, at)
    const values = editLimits(before, edit)
    if (areSameLimits(before, values)) return { after: values, isChanged: false }
    await saveOverride(tx, at, values)
    await announce(tx, {
      organizationId,
      by: operator,
      action: 'updated',
      before: present(before),
      after: present(values),
      notifies: 'limits',
    })
    return { after: values, isChanged: true }
  })
  const result = { scope, id: scopeId, limits: after, changed: isChanged }
  return { result, text: `${scope}  ${scopeId}  ${describe(after)}\n` }
}

function scopeOf({ organizationId, projectId, keyId }: LimitsTarget): {
  scope: LimitScope
  scopeId: string
} {
  if (keyId !== undefined) return { scope: 'key', scopeId: keyId }
  if (projectId !== undefined) return { scope: 'project', scopeId: projectId }
  return { scope: 'organization', scopeId: organizationId }
}

/** Locks what the limits are of, and returns how its audit event shows it. */
async function findResource(tx: Tx, { organizationId, projectId, keyId }: LimitsTarget) {
  if (keyId !== undefined) {
    const key = await lockProjectKey(tx, organizationId, keyId)
    if (!key) throw new Error(`The organization has no active project key with the id '${keyId}'.`)
    return (limits: LimitValues) => presentProjectKey(key, limits)
  }
  if (projectId !== undefined) {
    const project = await lockProject(tx, organizationId, projectId)
    if (!project) throw new Error(`The organization has no project with the id '${projectId}'.`)
    return (limits: LimitValues) => presentProject(project, limits)
  }
  return (limits: LimitValues) => ({ id: organizationId, object: 'organization', limits })
}

const describe = (values: LimitValues) =>
  Object.entries(values)
    .map(([name, number]) => `${name}=${number}`)
    .join(' ') || "the tier's limits"
