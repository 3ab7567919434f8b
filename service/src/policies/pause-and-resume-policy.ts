import { pausePolicy, resumePolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'

import type { PolicyDeps } from './deps.ts'
import { findCurrent, lockPolicyAt } from './find-policy.ts'
import { move } from './policy.ts'
import { policyNotActive, policyNotPaused } from './refusals.ts'
import { saveChange } from './save-change.ts'

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
      const policy = await lockPolicyAt(tx, wanted)
      const current = await findCurrent(tx, organizationId, policy)
      const moved = move(policy, how, current, deps.now())
      if (!moved) throw refusal(policy.state)
      return saveChange(tx, deps, context, {
        action,
        before: { policy, current },
        after: { policy: moved, current },
      })
    },
  })
}
