import { publishPolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError } from '#platform/api-error.ts'
import { createId } from '#platform/id.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import type { PolicyDeps } from './deps.ts'
import { findCurrent, lockPolicyAt } from './find-policy.ts'
import { findPolicy } from './policy-store.ts'
import { hasUnpublishedChanges, publish } from './policy.ts'
import { noUnpublishedChanges, ruleNotPublishable } from './refusals.ts'
import { requirePublishable } from './require-projects.ts'
import { waitUntilApplied } from './rollout/wait-until-applied.ts'
import { saveChange } from './save-change.ts'
import { insertVersion, pruneVersions } from './versions/version-store.ts'

export function servePublishPolicy(app: FastifyInstance, deps: PolicyDeps) {
  bindMutation(app, publishPolicy, deps, {
    // The rule was accepted when it was drafted, but the check may have become stricter since. A draft that
    // changes after this check has another revision, which `change` refuses.
    async prepare({ params, body }, { principal }) {
      const policy = await findPolicy(deps.db, principal.organizationId, params.policy_id)
      if (policy?.revision !== body.revision) return
      const problem = await deps.checkRule(policy.rule)
      if (problem) throw ruleNotPublishable(problem)
    },
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const wanted = { organizationId, id: params.policy_id, revision: body.revision }
      const policy = await lockPolicyAt(tx, wanted)
      if (!hasUnpublishedChanges(policy)) throw noUnpublishedChanges(policy.current_version)
      await requirePublishable(tx, organizationId, policy.project_ids)
      const now = deps.now()
      const before = { policy, current: await findCurrent(tx, organizationId, policy) }
      const { policy: published, version } = publish(policy, createId('polver', now), now)
      const key = { organizationId, policyId: policy.id }
      await insertVersion(tx, key, version)
      const answer = await saveChange(tx, deps, context, {
        action: 'published',
        before,
        after: { policy: published, current: version },
      })
      await pruneVersions(tx, key, version.version)
      return answer
    },
    async complete(answer, { query }, { principal }, signal) {
      if (query.wait !== 'applied') return answer
      const key = { organizationId: principal.organizationId, policyId: answer.id }
      const rollout = await waitUntilApplied(deps.db, key, signal).catch(ignoreUncountable)
      return { ...answer, rollout }
    },
  })
}

/** The policy is published even if the rollout cannot be read: it may be deleted, or the database away. */
function ignoreUncountable(error: unknown): undefined {
  if (error instanceof ApiError || isStoreAway(error)) return undefined
  throw error
}
