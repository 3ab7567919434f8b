import { pausePolicy, resumePolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'

import { findCurrent, holdPolicy } from './find-policy.ts'
import { move } from './policy.ts'
import { policyNotActive, policyNotPaused } from './refusals.ts'
import { saveChange } from './save-change.ts'
import type { PolicyTools } from './tools.ts'

export const servePausePolicy = (app: FastifyInstance, tools: PolicyTools) =>
  serveMove(app, tools, 'pause')

export const serveResumePolicy = (app: FastifyInstance, tools: PolicyTools) =>
  serveMove(app, tools, 'resume')

/** The emergency stop and its end are the same change in two directions. */
const directions = {
  pause: { endpoint: pausePolicy, action: 'paused', refusal: policyNotActive },
  resume: { endpoint: resumePolicy, action: 'resumed', refusal: policyNotPaused },
} as const

function serveMove(app: FastifyInstance, tools: PolicyTools, how: keyof typeof directions) {
  const { endpoint, action, refusal } = directions[how]
  bindMutation(app, endpoint, tools, {
    async change(tx, { params, body }, call) {
      const { organizationId } = call.principal
      const wanted = { organizationId, id: params.policy_id, revision: body.revision }
      const policy = await holdPolicy(tx, wanted)
      const current = await findCurrent(tx, organizationId, policy)
      const moved = move(policy, how, current, tools.now())
      if (!moved) throw refusal(policy.state)
      return saveChange(tx, tools, call, {
        action,
        before: { policy, current },
        after: { policy: moved, current },
      })
    },
  })
}
