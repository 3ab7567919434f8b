import type { FastifyInstance } from 'fastify'

import {
  serveApprovePolicy,
  serveListPolicyApprovals,
  serveWithdrawPolicyApproval,
} from './approvals/approve-policy.ts'
import { serveCreatePolicy } from './create-policy.ts'
import { serveReadPolicyDecisions } from './decisions/read-decisions.ts'
import { serveDeletePolicy } from './delete-policy.ts'
import type { PolicyDeps } from './deps.ts'
import { serveListPolicies } from './list-policies.ts'
import { servePausePolicy, serveResumePolicy } from './pause-and-resume-policy.ts'
import { servePublishPolicy } from './publish-policy.ts'
import { serveReplayPolicy } from './replay/replay-policy.ts'
import { serveRetrievePolicy } from './retrieve-policy.ts'
import { serveReadProcesses } from './rollout/read-processes.ts'
import { serveReadPolicyRollout } from './rollout/read-rollout.ts'
import { serveEvaluatePolicy } from './trials/evaluate-policy.ts'
import { serveReadPolicyExamples, serveReplacePolicyExamples } from './trials/examples.ts'
import { serveUpdatePolicy } from './update-policy.ts'
import { serveListPolicyVersions, serveRetrievePolicyVersion } from './versions/read-versions.ts'
import { serveRestorePolicyVersion } from './versions/restore-version.ts'

/** The endpoints of policies: drafts, versions, states, rollout, trials and decisions. */
export function servePolicies(app: FastifyInstance, deps: PolicyDeps) {
  serveListPolicies(app, deps)
  serveReadProcesses(app, deps)
  serveCreatePolicy(app, deps)
  serveRetrievePolicy(app, deps)
  serveUpdatePolicy(app, deps)
  servePublishPolicy(app, deps)
  servePausePolicy(app, deps)
  serveResumePolicy(app, deps)
  serveDeletePolicy(app, deps)
  serveListPolicyVersions(app, deps)
  serveRetrievePolicyVersion(app, deps)
  serveRestorePolicyVersion(app, deps)
  serveReadPolicyRollout(app, deps)
  serveListPolicyApprovals(app, deps)
  serveApprovePolicy(app, deps)
  serveWithdrawPolicyApproval(app, deps)
  serveEvaluatePolicy(app, deps)
  serveReplayPolicy(app, deps)
  serveReadPolicyExamples(app, deps)
  serveReplacePolicyExamples(app, deps)
  serveReadPolicyDecisions(app, deps)
}
