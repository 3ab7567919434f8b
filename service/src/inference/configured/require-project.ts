import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Pinned } from '#policies-in-force/in-force.ts'

/** 403 if the organization requires every call to belong to a project and the credential is bound to none. */
export function requireProject({
  principal,
  policies,
}: {
  principal: Principal
  policies: Pinned
}) {
  const isRequired = policies.snapshot.gateway?.config.org_controls.project_keys ?? false
  if (!isRequired || principal.isBoundToProject) return
  throw new ApiError(
    'permission_denied',
    'Your organization allows calls to models only with project keys, and with tokens that name a project themselves.',
  )
}
