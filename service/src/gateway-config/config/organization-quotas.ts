import { defaultGatewayConfig } from '@gatehouse/contract/policy-gateway/config'

import { isLimited } from '#gateway-config/compile-gateway.ts'
import type { Db, Tx } from '#platform/database.ts'

import { findConfig } from './config-store.ts'

/** The quotas and the budget that an organization has saved; null where it has none. */
export async function findOrganizationQuotas(db: Db | Tx, organizationId: string) {
  const config = (await findConfig(db, organizationId))?.config ?? defaultGatewayConfig()
  const { user_quotas, user_quota, project_quota, monthly_budget } = config.org_controls
  return {
    user: user_quotas && isLimited(user_quota) ? user_quota : null,
    project: isLimited(project_quota) ? project_quota : null,
    budget: monthly_budget ?? null,
  }
}
