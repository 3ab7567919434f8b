import type { LimitValues } from '@gatehouse/contract/limits'
import type { Project } from '@gatehouse/contract/project'

import { readLabels } from '#access/labels/labels.ts'
import { presentBudget } from '#access/limit-overrides/own-budget.ts'
import { presentLimits } from '#access/limit-overrides/own-limits.ts'
import { toSeconds } from '#platform/clock.ts'

import { presentKeyDefaults } from './key-defaults.ts'
import type { ProjectRow } from './project-store.ts'

/** `limits` are those that were set for this project. */
export const presentProject = (row: ProjectRow, limits: LimitValues): Project => ({
  id: row.id,
  object: 'organization.project',
  name: row.name,
  status: row.status,
  created_at: toSeconds(row.created_at),
  archived_at: row.archived_at && toSeconds(row.archived_at),
  limits: presentLimits(limits),
  monthly_budget: presentBudget(row),
  allowed_models: row.allowed_models,
  labels: readLabels(row.labels),
  key_defaults: presentKeyDefaults(row),
  managed_by: row.managed_by,
})
