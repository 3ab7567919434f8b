import { publishPolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { noteBrokenGlass } from '#access/two-persons/require-proposal.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError } from '#platform/api-error.ts'
import { createId } from '#platform/id.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import { requireApproval } from './approvals/require-approval.ts'
import type { PolicyDeps } from './deps.ts'
import { findCurrent, lockPolicyAt } from './find-policy.ts'
import { findPolicy } from './policy-store.ts'
import { hasUnpublishedChanges, publish } from './policy.ts'
import { noUnpublishedChanges, revisionConflict, ruleNotPublishable } from './refusals.ts'
import { requireJudgeable } from './require-judgeable.ts'
import { requirePublishable } from './require-projects.ts'
import { waitUntilApplied } from './rollout/wait-until-applied.ts'
import { saveChange } from './save-change.ts'
import { examplesMaxMs, requirePassingExamples } from './trials/require-passing-examples.ts'
import { warningsFor } from './trials/rule-warnings.ts'
import { requireAffordable, toStoredCosts } from './versions/require-affordable.ts'
import { insertVersion, pruneVersions } from './versions/version-store.ts'

/** The examples, the change, and 10 seconds until it is applied. */
const answerMaxMs = examplesMaxMs + 30_000

export function servePublishPolicy(app: FastifyInstance, deps: PolicyDeps) {
  /**
   * The requests whose revision was checked, with what the patterns cost. One that arrives before the edit it builds on is not
   * among them: it is refused.
   */
  const checked = new WeakMap<object, number[]>()
  bindMutation(app, publishPolicy, deps, {
    answerMaxMs,
    // The rule was accepted when it was drafted, but the check may have become stricter since. A draft or an
    // example that changes after these checks raises the revision, and `change` refuses the old one.
    async prepare({ params, body }, { principal }) {
      const { organizationId } = principal
      const policy = await findPolicy(deps.db, organizationId, params.policy_id)
      if (policy?.revision !== body.revision || !hasUnpublishedChanges(policy)) return
      const rule = await deps.checkRule(policy.rule, organizationId)
      if (rule.problem !== null) throw ruleNotPublishable(rule.problem)
      const ofCaller = { ...deps, scoreText: deps.scoreTextFor(principal) }
      await requirePassingExamples(ofCaller, organizationId, policy, body.force === true)
      checked.set(body, toStoredCosts(rule.patternCosts))
    },
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const wanted = { organizationId, id: params.policy_id, revision: body.revision }
      const policy = await lockPolicyAt(tx, deps, context, wanted)
      if (!hasUnpublishedChanges(policy)) throw noUnpublishedChanges(policy.current_version)
      const permit = await requireApproval(tx, context, { policy, glass: body, isDraft: true })
      const patternCosts = checked.get(body)
      if (!patternCosts) throw revisionConflict(policy.revision, 'body.revision')
      await requirePublishable(tx, organizationId, policy.project_ids)
      await requireJudgeable(tx, wanted, policy)
      await requireAffordable(tx, wanted, patternCosts, deps.patternCostMaxMs)
      const now = deps.now()
      const before = { policy, current: await findCurrent(tx, organizationId, policy) }
      const { policy: published, version } = publish(policy, createId('polver', now), now)
      const key = { organizationId, policyId: policy.id }
      await insertVersion(tx, key, version, patternCosts)
      const answer = await saveChange(tx, deps, context, {
        action: 'published',
        before,
        after: { policy: published, current: version },
        facts: {
          ...(body.force && { force: true }),
          ...(body.reason !== undefined && { reason: body.reason }),
          ...permit.facts,
        },
      })
      await noteBrokenGlass(tx, deps, context, { permit, resource: answer })
      await pruneVersions(tx, key, version.version)
      return answer
    },
    async complete(answer, { query }, { principal }, signal) {
      const warned = { ...answer, ...warningsFor(answer.draft.rule, deps) }
      if (query.wait !== 'applied') return warned
      const key = { organizationId: principal.organizationId, policyId: answer.id }
      const rollout = await waitUntilApplied(deps.db, key, signal).catch(ignoreUncountable)
      return { ...warned, rollout }
    },
  })
}

/** The policy is published even if the rollout cannot be read: it may be deleted, or the database away. */
function ignoreUncountable(error: unknown): undefined {
  if (error instanceof ApiError || isStoreAway(error)) return undefined
  throw error
}
