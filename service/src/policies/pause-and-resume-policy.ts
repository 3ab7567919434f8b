import { pausePolicy, resumePolicy } from '@gatehouse/contract/policy'
import type { BreakGlass } from '@gatehouse/contract/two-persons/break-glass'
import type { FastifyInstance } from 'fastify'

import { noteBrokenGlass, nothingAsked } from '#access/two-persons/require-proposal.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { startBackgroundWork } from '#platform/steps/background-work.ts'

import { requireApproval } from './approvals/require-approval.ts'
import { compileEvaluableInSteps } from './compile.ts'
import type { PolicyDeps } from './deps.ts'
import { findCurrent, lockPolicyAt } from './find-policy.ts'
import { move, type Version } from './policy.ts'
import { lacksJudge, policyNotActive, policyNotEvaluable, policyNotPaused } from './refusals.ts'
import { requireJudgeable } from './require-judgeable.ts'
import { saveChange } from './save-change.ts'
import { findPatternCosts } from './versions/pattern-cost-store.ts'
import { requireAffordable } from './versions/require-affordable.ts'

export const servePausePolicy = (app: FastifyInstance, deps: PolicyDeps) =>
  serveMove(app, deps, 'pause')

export const serveResumePolicy = (app: FastifyInstance, deps: PolicyDeps) =>
  serveMove(app, deps, 'resume')

/** The emergency stop and its end are the same change in two directions. */
const directions = {
  pause: { endpoint: pausePolicy, action: 'paused', refusal: policyNotActive },
  resume: { endpoint: resumePolicy, action: 'resumed', refusal: policyNotPaused },
} as const

function serveMove(app: FastifyInstance, deps: PolicyDeps, how: keyof typeof directions) {
  const { endpoint, action, refusal } = directions[how]
  bindMutation(app, endpoint, deps, {
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const wanted = { organizationId, id: params.policy_id, revision: body.revision }
      const policy = await lockPolicyAt(tx, deps, context, wanted)
      const current = await findCurrent(tx, organizationId, policy)
      const moved = move(policy, how, current, deps.now())
      if (!moved) throw refusal(policy.state)
      const glass: BreakGlass = { break_glass: false, ...body }
      // A pause never waits for a second person.
      const permit =
        how === 'resume'
          ? await requireApproval(tx, context, { policy, glass, isDraft: false })
          : nothingAsked
      if (how === 'resume' && current) {
        await requireEnforceable(current, deps)
        await requireJudgeable(tx, wanted, current)
        const key = { organizationId, policyId: policy.id }
        const costs = await findPatternCosts(tx, key, current.version)
        await requireAffordable(tx, wanted, costs, deps.patternCostMaxMs)
      }
      const answer = await saveChange(tx, deps, context, {
        action,
        before: { policy, current },
        after: { policy: moved, current },
        facts: permit.facts,
      })
      await noteBrokenGlass(tx, deps, context, { permit, resource: answer })
      return answer
    },
  })
}

/** An enforcing version that cannot be evaluated would refuse all calls in its scope, so it is not put back in force. */
async function requireEnforceable(
  { mode, rule, version }: Version,
  { engine, hasJudge }: PolicyDeps,
) {
  if (mode !== 'enforcing') return
  const compiled = await startBackgroundWork().run(compileEvaluableInSteps(rule, engine))
  const name = `version ${version}`
  if ('problem' in compiled) throw policyNotEvaluable(name, compiled.problem)
  if (compiled.needs.judge && !hasJudge()) throw policyNotEvaluable(name, lacksJudge)
}
