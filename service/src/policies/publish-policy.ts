import { publishPolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError } from '#platform/api-error.ts'
import { createId } from '#platform/id.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import { findCurrent, holdPolicy } from './find-policy.ts'
import { findPolicy } from './policy-store.ts'
import { hasUnpublishedChanges, publish } from './policy.ts'
import { noUnpublishedChanges, ruleNotPublishable } from './refusals.ts'
import { requirePublishable } from './require-projects.ts'
import { saveChange } from './save-change.ts'
import type { PolicyTools } from './tools.ts'
import { insertVersion, pruneVersions } from './version-store.ts'
import { waitUntilApplied } from './wait-until-applied.ts'

export function servePublishPolicy(app: FastifyInstance, tools: PolicyTools) {
  bindMutation(app, publishPolicy, tools, {
    // The rule was good when it was drafted; what judges rules may have become stricter since. At this
    // revision the draft cannot become another one before it is published.
    async prepare({ params, body }, { principal }) {
      const policy = await findPolicy(tools.db, principal.organizationId, params.policy_id)
      if (policy?.revision !== body.revision) return
      const problem = await tools.checkRule(policy.rule)
      if (problem) throw ruleNotPublishable(problem)
    },
    async change(tx, { params, body }, call) {
      const { organizationId } = call.principal
      const wanted = { organizationId, id: params.policy_id, revision: body.revision }
      const policy = await holdPolicy(tx, wanted)
      if (!hasUnpublishedChanges(policy)) throw noUnpublishedChanges(policy.current_version)
      await requirePublishable(tx, organizationId, policy.project_ids)
      const now = tools.now()
      const before = { policy, current: await findCurrent(tx, organizationId, policy) }
      const { policy: published, version } = publish(policy, createId('polver', now), now)
      const place = { organizationId, policyId: policy.id }
      await insertVersion(tx, place, version)
      const answer = await saveChange(tx, tools, call, {
        action: 'published',
        before,
        after: { policy: published, current: version },
      })
      await pruneVersions(tx, place, version.version)
      return answer
    },
    async complete(answer, { query }, { principal }, signal) {
      if (query.wait !== 'applied') return answer
      const place = { organizationId: principal.organizationId, policyId: answer.id }
      const rollout = await waitUntilApplied(tools.db, place, signal).catch(cannotBeCounted)
      return { ...answer, rollout }
    },
  })
}

/** It is published, whatever becomes of the count: the policy may be deleted by now, the store away. */
function cannotBeCounted(error: unknown): undefined {
  if (error instanceof ApiError || isStoreAway(error)) return undefined
  throw error
}
